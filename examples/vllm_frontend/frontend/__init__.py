"""An OpenAI-compatible frontend before a vLLM engine: pictures go to patchmill, tokens to vLLM."""
