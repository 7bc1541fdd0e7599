// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.threads;

import dev.gantry.core.internal.memory.Cleanup;
import java.util.function.BooleanSupplier;

/// Decides, while a load onto GPUs runs, how many of its readers read. Some begin; the others wait, and join two by two
/// as long as the GPUs wait for bytes: that is so while readers that want a buffer back find that its copy has long been
/// done. How many readers fill a link depends on the host: on one with 16 cores eight reached 42 GB/s of 55, sixteen 48;
/// on another eight reached 53. Thread-safe.
public final class ReaderGrowth {
  /// How often each reader must have turned to its other buffer before more readers join.
  private static final int TURNS = 3;

  private static final int STEP = 2;

  /// For readers whose number is fixed.
  public static final ReaderGrowth NONE = new ReaderGrowth(1, 1);

  private final int begin;
  private final int most;
  private int joined;
  private int turns;
  private int waits;
  private boolean over;

  /// @param begin how many readers read from the start
  /// @param most how many readers may read
  public ReaderGrowth(int begin, int most) {
    this.begin = Math.min(begin, most);
    this.most = most;
    this.joined = this.begin;
  }

  /// Waits until a reader is to read.
  ///
  /// @param reader the reader's number, from 0 on
  /// @return false if the load has ended without it
  public synchronized boolean join(int reader) {
    Cleanup.awaitUninterruptibly(() -> {
      while (reader >= joined && !over) {
        wait();
      }
      return true;
    });
    return reader < joined;
  }

  /// Notes that a reader has filled a buffer and turns to its other one.
  ///
  /// @param waits whether the reader must wait for that buffer's copy, since the link is busy
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

  /// Ends the waiting of readers that have not joined: nothing is left to read.
  public synchronized void end() {
    over = true;
    notifyAll();
  }

  /// How many readers may read.
  public int most() {
    return most;
  }

  /// How many readers have joined.
  public synchronized int joined() {
    return joined;
  }
}
