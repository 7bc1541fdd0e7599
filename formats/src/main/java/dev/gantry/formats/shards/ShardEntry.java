package dev.gantry.formats.shards;

/// A shard as `shards.json` has it, of which nothing is known to be true but that its name is one.
///
/// @param position where it begins in `shards.json`, in bytes
record ShardEntry(Shard shard, long position) {}
