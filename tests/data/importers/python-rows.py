# Texts joined into rows of one length, under a trainer that still took arguments of its own.
from dataclasses import dataclass, field

from peft import LoraConfig
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, HfArgumentParser, TrainingArguments
from trl import SFTTrainer
from trl.trainer import ConstantLengthDataset


@dataclass
class Wishes:
    base: str = field(default="mistralai/Mistral-7B-v0.1", metadata={"help": "where it starts"})
    width: int = field(default=1536, metadata={"help": "tokens of a row"})
    small: bool = field(default=True)
    modules: list = field(default_factory=lambda: ["q_proj", "v_proj"])


wishes, training_args = HfArgumentParser((Wishes, TrainingArguments)).parse_args_into_dataclasses()
four_bits = None
if wishes.small:
    four_bits = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True)
model = AutoModelForCausalLM.from_pretrained(wishes.base, quantization_config=four_bits, use_flash_attention_2=False)
if training_args.gradient_checkpointing:
    model.gradient_checkpointing_enable()


def rows(texts, wishes):
    return ConstantLengthDataset(tokenizer, texts, seq_length=wishes.width, infinite=True)


trainer = SFTTrainer(
    model,
    args=training_args,
    train_dataset=rows(texts, wishes),
    max_seq_length=None,
    peft_config=LoraConfig(r=8, lora_alpha=16, target_modules=wishes.modules, lora_dropout=0.05),
    tokenizer=tokenizer,
)
trainer.train()
merged = AutoModelForCausalLM.from_pretrained(wishes.base, torch_dtype=torch.float16)
