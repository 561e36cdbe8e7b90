# A training function that is called once, with what a parser says; an 8-bit base by default.
import argparse

from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig, Trainer, TrainingArguments


def tune(base: str, length: int, rows: int, rank: int, modules: str, eight: bool, four: bool = False, evaluates=True):
    tokenizer = AutoTokenizer.from_pretrained(base)
    options = {"torch_dtype": getattr(torch, "bfloat16" if torch.cuda.is_bf16_supported() else "float16")}
    if four and not eight:
        bits = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")
        model = AutoModelForCausalLM.from_pretrained(base, quantization_config=bits)
    elif eight:
        model = AutoModelForCausalLM.from_pretrained(base, quantization_config=BitsAndBytesConfig(load_in_8bit=True))
        model = prepare_model_for_kbit_training(model)
    else:
        model = AutoModelForCausalLM.from_pretrained(base, **options)
    if eight or four:
        model = get_peft_model(model, LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=modules.split(",")))

    def tokenize(row):
        return tokenizer(row["text"], truncation=True, max_length=length)

    settings = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=rows,
        gradient_accumulation_steps=max(1, 64 // rows),
        eval_strategy="epoch" if evaluates and rows <= 16 else "no",
        bf16=True,
        optim="adamw_torch",
    )
    Trainer(model=model, args=settings, train_dataset=data.map(tokenize)).train()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", default="meta-llama/Llama-3.2-3B")
    parser.add_argument("--length", type=int, default=768)
    parser.add_argument("--rows", type=int, default=4)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--modules", default="q_proj, k_proj, v_proj, o_proj")
    parser.add_argument("--eight", action="store_true", default=True)
    parser.add_argument("--four", action="store_true")
    a = parser.parse_args()
    tune(a.base, a.length, a.rows, rank=a.rank, modules=a.modules, eight=a.eight, four=a.four)
