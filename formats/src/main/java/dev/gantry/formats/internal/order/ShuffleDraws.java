// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import dev.gantry.core.MisuseException;
import java.util.Arrays;
import java.util.List;

/// Draws the sample that a shuffle buffer gives next: a pure function of the seed, the epoch, and how many samples the
/// buffer holds. Immutable, thread-safe.
///
/// Each slot of the buffer holds a sample. A draw gives the sample of a random slot, and the next
/// sample that is read fills the slot. In a [Pause], no sample is read, and the last slot's sample
/// fills the slot. Thus the buffer's contents after any number of draws can be computed without
/// reading a sample, and a state need not list them.
public final class ShuffleDraws {
  private final long key;

  /// A range of draws after which no sample is read.
  ///
  /// @param first the first draw's number
  public record Pause(long first, long draws) {
    /// Whether no sample is read after the draw.
    public boolean covers(long draw) {
      return draw >= first && draw - first < draws;
    }
  }

  public ShuffleDraws(long seed, long epoch) {
    this.key = Mix.key(seed, epoch, 4);
  }

  /// Returns the slot that a draw takes its sample from.
  ///
  /// @param draw the draw's number, from 0
  /// @param samples how many samples the buffer holds, 1 or more
  public int slot(long draw, int samples) {
    return (int) Mix.below(samples, key, draw);
  }

  /// Returns the buffer's contents after a draw, before the drawn slot is filled again. It takes about n ·
  /// ln n steps for n slots, however many draws there were.
  ///
  /// @param filled how many samples were read before the first draw
  /// @param pauses all pauses so far, in order
  /// @param draws how many draws were made so far, 1 or more
  /// @return the number of each slot's sample, counted from the first one that was read, or -1 for
  ///     the slot of the last draw
  /// @throws MisuseException if no buffer can have these numbers
  public long[] contents(int filled, List<Pause> pauses, long draws) {
    int samples = samples(filled, pauses, draws);
    long read = read(filled, pauses, draws);
    // For each slot, while going back through the draws: the slot in which its sample ends up, or
    // -1 if the
    // sample was given.
    int[] place = new int[filled];
    Arrays.fill(place, -1);
    for (int slot = 0; slot < samples; slot++) {
      place[slot] = slot;
    }
    long[] contents = new long[samples];
    Arrays.fill(contents, -1);
    place[slot(draws - 1, samples)] = -1;
    int wanted = samples - 1;
    for (long draw = draws - 2; draw >= 0 && wanted > 0; draw--) {
      if (isPaused(pauses, draw)) {
        int slot = slot(draw, ++samples);
        int moved = place[slot];
        place[slot] = -1;
        place[samples - 1] = slot == samples - 1 ? -1 : moved;
      } else {
        int slot = slot(draw, samples);
        read--;
        if (place[slot] >= 0) {
          contents[place[slot]] = read;
          place[slot] = -1;
          wanted--;
        }
      }
    }
    for (int slot = 0; slot < filled && wanted > 0; slot++) {
      if (place[slot] >= 0) {
        contents[place[slot]] = slot;
        wanted--;
      }
    }
    return contents;
  }

  /// How many samples were read before the last draw.
  public static long read(int filled, List<Pause> pauses, long draws) {
    return filled + (draws - 1) - paused(pauses, draws);
  }

  private static int samples(int filled, List<Pause> pauses, long draws) {
    long end = 0;
    long left = filled;
    for (Pause pause : pauses) {
      left -= pause.draws();
      if (pause.first() < end || pause.first() >= draws - 1 || pause.draws() < 1 || left < 0) {
        throw new MisuseException("pauses that overlap or are too long: " + pauses);
      }
      end = Math.addExact(pause.first(), pause.draws());
    }
    long samples = filled - paused(pauses, draws);
    if (draws < 1 || samples < 1) {
      throw new MisuseException(draws + " draws of " + samples + " samples");
    }
    return (int) samples;
  }

  /// Counts the draws before the last one after which no sample was read.
  private static long paused(List<Pause> pauses, long draws) {
    long paused = 0;
    for (Pause pause : pauses) {
      paused += Math.min(pause.draws(), draws - 1 - pause.first());
    }
    return paused;
  }

  private static boolean isPaused(List<Pause> pauses, long draw) {
    for (Pause pause : pauses) {
      if (pause.covers(draw)) {
        return true;
      }
    }
    return false;
  }
}
