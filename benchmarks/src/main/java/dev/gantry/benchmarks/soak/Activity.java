// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.soak;

import ai.djl.Device;
import java.io.Closeable;
import java.io.IOException;
import java.util.Random;
import java.util.concurrent.TimeUnit;

/// The activity of one thread, which goes on beside others: each round is an operation or a few,
/// some with a fault.
abstract class Activity implements Closeable {
  /// An operation of a round.
  @FunctionalInterface
  interface Operation {
    void run(Trial trial) throws Exception;
  }

  /// An operation failed as its fault does not excuse.
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

  /// @param number differs among the activities of a scene: it decides what is random here
  Activity(Scene scene, int number) {
    this.scene = scene;
    this.device = scene.devices().get(number % scene.devices().size());
    this.random = new Random(scene.seed() * 1_000_003 + number);
  }

  abstract void round() throws Exception;

  /// Goes on until `end`, in the time of `System.nanoTime`, and frees what it holds.
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

  /// How long the operation takes by now.
  final long seconds() {
    return TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - since);
  }

  /// Returns the name of the operation that is running.
  final String doing() {
    return doing;
  }

  /// One of these faults, or none, as often as all of them together.
  protected final Fault anyOf(Fault... faults) {
    return random.nextBoolean() ? Fault.NONE : faults[random.nextInt(faults.length)];
  }

  /// Does an operation with a fault.
  ///
  /// @return whether it ended well
  /// @throws UnexpectedException if it fails otherwise than the fault excuses
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

  /// Frees what the rounds have kept.
  @Override
  public void close() throws IOException {}
}
