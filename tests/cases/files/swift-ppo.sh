swift rlhf --rlhf_type ppo --model Qwen/Qwen2.5-0.5B-Instruct --reward_model Qwen/Qwen2.5-0.5B-Instruct --train_type full \
    --torch_dtype bfloat16 --dataset data.jsonl --max_length 256 --max_completion_length 128 --per_device_train_batch_size 2 \
    --gradient_accumulation_steps 2 --attn_impl flash_attn
