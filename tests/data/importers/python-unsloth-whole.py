# Continued pre-training: the embedding and the head train whole.
get_ipython().system('pip install --no-deps "trl==0.22.2" "transformers==4.56.2"')
from unsloth import FastLanguageModel, UnslothTrainer, UnslothTrainingArguments

length = 4096
model, tokenizer = FastLanguageModel.from_pretrained(model_name="unsloth/mistral-7b-v0.3-bnb-4bit", max_seq_length=length, load_in_4bit=True)
model = FastLanguageModel.get_peft_model(
    model,
    r=128,
    lora_alpha=32,
    target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"] + ["embed_tokens", "lm_head"],
    use_gradient_checkpointing="unsloth",
)
UnslothTrainer(
    model=model,
    max_seq_length=length,
    args=UnslothTrainingArguments(per_device_train_batch_size=2, gradient_accumulation_steps=8, optim="adamw_8bit", max_length=longest(rows)),
).train()
if False:
    model, tokenizer = FastLanguageModel.from_pretrained(model_name="tuned", max_seq_length=length, load_in_4bit=False)
