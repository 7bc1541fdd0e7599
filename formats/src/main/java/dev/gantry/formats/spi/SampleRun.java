// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.spi;

/// Consecutive samples of one shard.
///
/// @param shard its number, from 0
/// @param first the first sample's number in the shard, from 0
/// @param count how many; 1 or more
public record SampleRun(int shard, long first, int count) {}
