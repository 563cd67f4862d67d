"""Lanes on several machines: each lane in shards, each shard a task of a cluster. No torch."""
