# What the flags do not say: adapters over a 4-bit base, and rows of one length.
from dataclasses import dataclass, field


@dataclass
class Wishes:
    model_id: str = field(default=None)
    max_seq_len: int = field(default=256)


wishes, arguments = TrlParser((Wishes, SFTConfig)).parse_args_and_config()
bits = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True)
model = AutoModelForCausalLM.from_pretrained(wishes.model_id, quantization_config=bits)
adapters = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear")
SFTTrainer(model=model, args=arguments, peft_config=adapters, max_seq_length=wishes.max_seq_len, packing=True).train()
