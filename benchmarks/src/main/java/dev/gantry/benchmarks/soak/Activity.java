// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.soak;

import ai.djl.Device;
import java.io.Closeable;
import java.io.IOException;
import java.util.Random;
import java.util.concurrent.TimeUnit;

/// The work of one thread, which runs beside other activities. Each round does one operation or a
/// few, some of them with a fault.
abstract class Activity implements Closeable {
  /// An operation of a round.
  @FunctionalInterface
  interface Operation {
    void run(Trial trial) throws Exception;
  }

  /// An operation failed in a manner that its fault does not excuse.
  static final class UnexpectedException extends Exception {
    private static final long serialVersionUID = 1L;

    UnexpectedException(String message, Throwable cause) {
      super(message, cause);
    }
  }

  protected final Scene scene;
  protected final Random random;

  /// The device of what this loads; activities take turns.
  protected final Device device;

  private volatile String doing = "nothing yet";
  private volatile long since = System.nanoTime();

  /// @param number the activity's number in its scene, which seeds its random choices
  Activity(Scene scene, int number) {
    this.scene = scene;
    this.device = scene.devices().get(number % scene.devices().size());
    this.random = new Random(scene.seed() * 1_000_003 + number);
  }

  abstract void round() throws Exception;

  /// Runs rounds until `end`, a time of `System.nanoTime`, and frees what the activity holds.
  final void run(long end) throws Exception {
    try (this) {
      while (end - System.nanoTime() > 0 && !Thread.currentThread().isInterrupted()) {
        round();
      }
    } finally {
      begin("nothing any more");
    }
  }

  private void begin(String operation) {
    since = System.nanoTime();
    doing = operation;
  }

  /// Returns how long the current operation has run.
  final long seconds() {
    return TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - since);
  }

  /// Returns the name of the operation that is running.
  final String doing() {
    return doing;
  }

  /// Returns one of these faults or none; none is as likely as all of them together.
  protected final Fault anyOf(Fault... faults) {
    return random.nextBoolean() ? Fault.NONE : faults[random.nextInt(faults.length)];
  }

  /// Does an operation with a fault.
  ///
  /// @return whether the operation succeeded
  /// @throws UnexpectedException if it fails in a manner that the fault does not excuse
  protected final boolean attempt(String operation, Fault fault, Operation work)
      throws UnexpectedException {
    begin(operation + (fault == Fault.NONE ? "" : " with " + fault));
    boolean good = true;
    int failedCalls;
    try (Trial trial = new Trial(fault, scene.session(), scene.timer(), random)) {
      try {
        work.run(trial);
      } catch (Exception | OutOfMemoryError e) {
        good = false;
        if (!fault.excuses(e)) {
          throw new UnexpectedException(doing + ": " + e, e);
        }
      }
      failedCalls = trial.failedCalls();
    }
    scene.tally().operation(operation);
    if (fault != Fault.NONE) {
      scene.tally().faults(fault.name(), fault == Fault.FILES ? failedCalls : 1, good);
    }
    return good;
  }

  /// Frees what earlier rounds have kept.
  @Override
  public void close() throws IOException {}
}
