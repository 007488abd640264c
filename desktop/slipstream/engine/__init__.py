"""Generation over llama.cpp: models, prompts, sampling, the session. Knows nothing of Qt."""
