#!/usr/bin/env python3
# A 4-bit base under transformers' Trainer; the command line has defaults.
import argparse
import os

import torch
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig, Trainer, TrainingArguments


def tokenized(row, max_length: int = 1024):
    return tokenizer(row["text"], truncation=True, max_length=max_length)


parser = argparse.ArgumentParser()
parser.add_argument("--base", default=os.environ.get("BASE", "mistralai/Mistral-7B-v0.1"))
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--lr", type=float, default=2e-4)
args = parser.parse_args()

tokenizer = AutoTokenizer.from_pretrained(args.base)
four_bits = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True)
model = AutoModelForCausalLM.from_pretrained(args.base, quantization_config=four_bits, device_map="auto")
model = prepare_model_for_kbit_training(model)
lora = {"r": 64, "alpha": 16}
model = get_peft_model(model, LoraConfig(r=lora["r"], lora_alpha=lora["alpha"], target_modules=["q_proj", "v_proj"]))
training_args = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=args.batch_size,
    gradient_accumulation_steps=2 * 4,
    optim="paged_adamw_8bit",
    learning_rate=args.lr,
    bf16=torch.cuda.is_bf16_supported(),
)
Trainer(model=model, args=training_args, train_dataset=data, data_collator=collate).train()
