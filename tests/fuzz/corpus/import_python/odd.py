x = y = -(3 + 4) * 2 // 1
y = {"a": [1, 2, (3,)], **x, f"{x}": r"\d"}
a: int = field(default=x["a"][0]) if not None else lambda q: q
TrainingArguments(**dict(output_dir='o' "p"), bf16=a or True, per_device_train_batch_size=0x10)
