# The reference is loaded beside the adapters' base.
base = "gpt2"
model = AutoModelForCausalLM.from_pretrained(base, torch_dtype=torch.bfloat16)
other = AutoModelForCausalLM.from_pretrained(base, torch_dtype=torch.bfloat16)
DPOTrainer(model, other, args=DPOConfig(per_device_train_batch_size=1, max_length=256), peft_config=LoraConfig(r=8)).train()
