// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

import java.util.List;
import java.util.concurrent.Callable;

/// One of several implementations of the same work. Not thread-safe.
public interface Contender extends AutoCloseable {
  String name();

  /// Returns a note that belongs beside the contender's results; empty if there is none.
  default String note() {
    return "";
  }

  /// Does the work once.
  ///
  /// @return the seconds that the work took, without preparation and clean-up
  /// @throws Exception if the work failed; it is not run again then
  double run() throws Exception;

  @Override
  default void close() {}

  /// Work whose time is taken by the caller.
  @FunctionalInterface
  interface Work {
    void run() throws Exception;
  }

  /// Work that returns how much it did: samples, or bytes.
  @FunctionalInterface
  interface Counted {
    long run() throws Exception;
  }

  /// Work that measures itself: it returns the seconds of the part that counts.
  @FunctionalInterface
  interface Timed {
    double run() throws Exception;
  }

  /// A contender that counts as long as its work runs.
  ///
  /// @param expected what the work must return: proof that it skipped no part
  static Contender of(String name, long expected, Counted work) {
    return of(
        name,
        () -> {
          long done = work.run();
          if (done != expected) {
            throw new WrongBytesException(name + ": " + done + " done, not " + expected);
          }
        });
  }

  /// A contender that counts as long as its work runs.
  static Contender of(String name, Work work, Runnable... ends) {
    return timed(name, "", () -> seconds(work), ends);
  }

  /// A contender whose result is closed off the clock.
  static Contender closing(String name, Callable<AutoCloseable> work) {
    return timed(
        name,
        "",
        () -> {
          long start = System.nanoTime();
          try (AutoCloseable _ = work.call()) {
            return (System.nanoTime() - start) / 1e9;
          }
        });
  }

  /// A contender whose work takes its own time.
  ///
  /// @param ends are run, in this order, when the contender is closed
  static Contender timed(String name, String note, Timed work, Runnable... ends) {
    return new Contender() {
      @Override
      public String name() {
        return name;
      }

      @Override
      public String note() {
        return note;
      }

      @Override
      public double run() throws Exception {
        return work.run();
      }

      @Override
      public void close() {
        List.of(ends).forEach(Runnable::run);
      }
    };
  }

  static double seconds(Work work) throws Exception {
    long start = System.nanoTime();
    work.run();
    return (System.nanoTime() - start) / 1e9;
  }
}
