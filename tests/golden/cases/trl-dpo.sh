trl dpo --config trl-dpo.yaml
