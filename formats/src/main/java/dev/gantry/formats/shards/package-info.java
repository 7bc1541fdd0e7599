// SPDX-License-Identifier: Apache-2.0
/// Raw tensor shards: many samples in few files, each field of a shard end to end, so that
/// consecutive samples are one read. `docs/shards.md` in the source tree states the format.
@NullMarked
package dev.gantry.formats.shards;

import org.jspecify.annotations.NullMarked;
