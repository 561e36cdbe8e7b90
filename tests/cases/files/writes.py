# Starts a trainer by a list of words.
import subprocess

base = "gpt2"
subprocess.run(["trl", "sft", "--model_name_or_path", base, "--max_length", "512", "--per_device_train_batch_size", "2"], check=True)
