// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.threads;

import dev.gantry.core.internal.memory.Cleanup;
import java.util.function.BooleanSupplier;

/// Decides, while a load onto GPUs runs, how many of its readers read. Some readers begin. The
/// other readers wait, and join two by two as long as the GPUs wait for bytes. The GPUs wait if
/// readers that reuse a buffer find its copy already done. How many readers fill a link depends on
/// the host: on a host with 16 cores, eight readers reached 42 GB/s of 55, and sixteen reached 48;
/// on another host, eight reached 53. Thread-safe.
public final class ReaderGrowth {
  /// The number of times that each reader must have changed its buffer before more readers join.
  private static final int TURNS = 3;

  private static final int STEP = 2;

  /// The value for loads whose number of readers is fixed.
  public static final ReaderGrowth NONE = new ReaderGrowth(1, 1);

  private final int begin;
  private final int most;
  private int joined;
  private int turns;
  private int waits;
  private boolean over;

  /// @param begin the number of readers that read from the start
  /// @param most the largest number of readers that may read
  public ReaderGrowth(int begin, int most) {
    this.begin = Math.min(begin, most);
    this.most = most;
    this.joined = this.begin;
  }

  /// Waits until a reader may read.
  ///
  /// @param reader the reader's number, from 0 on
  /// @return false if the load has ended before this reader was needed
  public synchronized boolean join(int reader) {
    Cleanup.awaitUninterruptibly(() -> {
      while (reader >= joined && !over) {
        wait();
      }
      return true;
    });
    return reader < joined;
  }

  /// Records that a reader has filled a buffer and changes to its other buffer.
  ///
  /// @param waits says whether the reader must wait for the other buffer's copy, since the link is
  ///     busy
  public void turned(BooleanSupplier waits) {
    if (begin < most) {
      add(waits.getAsBoolean() ? 1 : 0);
    }
  }

  private synchronized void add(int waited) {
    turns++;
    waits += waited;
    if (turns >= TURNS * joined) {
      if (waits * 4 < turns) {
        joined = Math.min(most, joined + STEP);
        notifyAll();
      }
      turns = 0;
      waits = 0;
    }
  }

  /// Ends the wait of readers that have not joined, since nothing is left to read.
  public synchronized void end() {
    over = true;
    notifyAll();
  }

  /// The largest number of readers that may read.
  public int most() {
    return most;
  }

  /// The number of readers that have joined.
  public synchronized int joined() {
    return joined;
  }
}
