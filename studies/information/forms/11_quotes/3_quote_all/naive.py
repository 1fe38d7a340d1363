def quote_all(texts):
    return [f'"{text}"' for text in texts]
