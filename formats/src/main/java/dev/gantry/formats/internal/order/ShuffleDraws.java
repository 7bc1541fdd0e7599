// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import dev.gantry.core.MisuseException;
import java.util.Arrays;
import java.util.List;

/// Draws the sample that a shuffle buffer gives next: a pure function of the seed, the epoch, and how many samples the
/// buffer holds. Immutable, thread-safe.
///
/// The buffer is slots, each with a sample. A draw takes the sample of a random slot, and the next
/// sample that is read takes its place; in a [Pause] none is read, and the last slot's sample takes
/// it. So which samples are in the buffer after any number of draws can be told without a sample
/// being read: a state need not list them.
public final class ShuffleDraws {
  private final long key;

  /// Draws behind which nothing is read.
  ///
  /// @param first the first one's number
  public record Pause(long first, long draws) {
    /// Whether nothing is read behind the draw.
    public boolean covers(long draw) {
      return draw >= first && draw - first < draws;
    }
  }

  public ShuffleDraws(long seed, long epoch) {
    this.key = Mix.key(seed, epoch, 4);
  }

  /// The slot of a draw.
  ///
  /// @param draw its number, from 0
  /// @param samples in the buffer, 1 or more
  public int slot(long draw, int samples) {
    return (int) Mix.below(samples, key, draw);
  }

  /// What the buffer holds behind a draw, before anything takes the place of the sample that it
  /// gave. Takes some n · ln n steps for n slots, whatever the number of draws.
  ///
  /// @param filled samples that were read before the first draw
  /// @param pauses in their order; all that came before
  /// @param draws made so far, 1 or more
  /// @return the number of each slot's sample, counted from the first one that was read, or -1 for
  ///     the slot of the last draw
  /// @throws MisuseException if no buffer comes to that
  public long[] contents(int filled, List<Pause> pauses, long draws) {
    int samples = samples(filled, pauses, draws);
    long read = read(filled, pauses, draws);
    // For each slot, going back: where its sample is in the end, or -1 where it was given.
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

  /// Draws before the last one behind which nothing was read.
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
