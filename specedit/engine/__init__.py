"""The token half: the target model, verification, decoding. `api` alone is free of torch."""
