import sys

from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained(sys.argv[1])
Trainer(model=model, args=TrainingArguments("out", per_device_train_batch_size=2)).train()
