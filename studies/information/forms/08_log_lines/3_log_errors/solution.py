def log_errors(texts):
    return [f"error >> {text}" for text in texts]
