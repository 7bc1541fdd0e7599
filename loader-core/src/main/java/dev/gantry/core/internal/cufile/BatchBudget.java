// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.internal.natives.CuFileParameters;
import dev.gantry.core.internal.natives.CuFileProperties;
import java.util.List;
import java.util.function.BooleanSupplier;

/// Bounds how many entries all batches of a driver have under way at once: the driver's `io_batchsize`, or half
/// of its scarcest kind of bounce buffers if that is less.
///
/// In compatibility mode cuFile copies through the CPU. There an entry holds a bounce buffer until its status
/// was asked for, and a submission that finds no buffer never returns: with the defaults of libcufile 1.15.1
/// that is the 65th entry of more than 4 KiB (seen on an H200 host). The other half of the buffers is left to
/// reads on threads. In this mode also only one batch is under way at once, since with several a load hung.
/// Thread-safe.
public final class BatchBudget {
  /// How many bounce buffers libcufile 1.15.1 has of each larger size, unless it is configured otherwise.
  private static final long FEWEST_BUFFERS = 64;

  private final int most;
  private final boolean oneAtOnce;
  private int free;

  /// How often [#wake] was called.
  private long changes;

  /// Returns the budget of an open driver. A library that is too old for batches gets one entry, which is not used.
  public static BatchBudget of(CuFile cuFile) {
    long buffers =
        cuFile.parameters().then(CuFileParameters::tryPool).toOptional().stream()
            .flatMap(List::stream)
            .mapToLong(CuFileParameters.PoolSlab::count)
            .min()
            .orElse(FEWEST_BUFFERS);
    CuFileProperties properties = cuFile.properties();
    return new BatchBudget(
        Math.clamp(buffers / 2, 1, Math.max(1, properties.batchEntries())),
        properties.allowsCompatMode());
  }

  /// @param oneAtOnce whether nothing is taken until all that was taken is given back
  public BatchBudget(int most, boolean oneAtOnce) {
    if (most < 1) {
      throw new MisuseException("a batch needs room for an entry, not for " + most);
    }
    this.most = most;
    this.free = most;
    this.oneAtOnce = oneAtOnce;
  }

  /// Returns how many entries there are in all, free or taken.
  public int most() {
    return most;
  }

  /// Takes up to `wanted` entries, but at least one. Waits while none is free.
  ///
  /// @param mayContinue whether to go on waiting; called again after each [#wake], without this budget's lock
  /// @return how many entries were taken; 0 if the caller may not continue, or is interrupted
  int take(int wanted, BooleanSupplier mayContinue) {
    try {
      int taken = 0;
      for (long seen = changes(); taken == 0 && mayContinue.getAsBoolean(); ) {
        synchronized (this) {
          while (room(wanted) == 0 && changes == seen) {
            wait();
          }
          seen = changes;
          taken = room(wanted);
          free -= taken;
        }
      }
      return taken;
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      return 0;
    }
  }

  private int room(int wanted) {
    return oneAtOnce && free < most ? 0 : Math.min(wanted, free);
  }

  private synchronized long changes() {
    return changes;
  }

  synchronized void giveBack(int entries) {
    free += entries;
    notifyAll();
  }

  /// Makes all waiting threads ask again whether they may continue.
  public synchronized void wake() {
    changes++;
    notifyAll();
  }
}
