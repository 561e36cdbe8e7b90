# Supervised fine-tuning with adapters, everything written down.
from datasets import load_dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM
from trl import SFTConfig, SFTTrainer
import torch

BASE = "Qwen/Qwen2.5-7B-Instruct"
PER_CARD, EFFECTIVE = 4, 64
MICRO = 4


class Settings:
    length: int = 4096
    rank: int = 32


settings = Settings()
common = dict(logging_steps=10, save_strategy="no", report_to="none")

model = AutoModelForCausalLM.from_pretrained(
    BASE,
    torch_dtype=torch.bfloat16,
    attn_implementation="flash_attention_2" if torch.cuda.is_available() else "sdpa",
)
peft_config = LoraConfig(
    r=settings.rank,
    lora_alpha=2 * settings.rank,
    lora_dropout=0.05,
    target_modules=["q_proj", "k_proj", "v_proj", "o_proj"] + ["gate_proj", "up_proj", "down_proj"],
    task_type="CAUSAL_LM",
)
args = SFTConfig(
    output_dir="out",
    per_device_train_batch_size=MICRO,
    gradient_accumulation_steps=64 // MICRO,
    max_length=settings.length,
    packing=True,
    gradient_checkpointing=True,
    bf16=True,
    optim="adamw_torch_fused",
    learning_rate=2e-4,
    **common,
)
trainer = SFTTrainer(model=model, args=args, train_dataset=load_dataset("trl-lib/Capybara", split="train"), peft_config=peft_config)
trainer.train()
