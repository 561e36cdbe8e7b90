from trl import DPOConfig, DPOTrainer

arguments = DPOConfig(per_device_train_batch_size=pick(rows), max_length=512, run_name=f"{tag}", packing=choose())
DPOTrainer(model="Qwen/Qwen2.5-0.5B", args=arguments, train_dataset=rows).train()
