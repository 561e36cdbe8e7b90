import argparse

from trl import SFTConfig, SFTTrainer

parser = argparse.ArgumentParser()
parser.add_argument("--length", type=int, default=1024)
options = parser.parse_args()
SFTTrainer("Qwen/Qwen2.5-0.5B", args=SFTConfig(max_length=options.length, per_device_train_batch_size=1, bf16=True)).train()
