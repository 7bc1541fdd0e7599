// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Reads the wanted features of one record after the other. Features are named by their index among the
/// wanted ones. A returned value is valid until the next step or record. Not thread-safe.
interface ExampleReader {
  /// Chooses the reader of a record.
  @FunctionalInterface
  interface Choice {
    /// @return a reader that has read the record
    /// @throws IOException if the record is no valid message
    ExampleReader read(MemorySegment record) throws IOException;
  }

  /// Chooses the fast reader for records that are written the usual way, else the complete one.
  static Choice usual(List<FeatureLayout> features) {
    FastReader fast = new FastReader(features);
    return new Choice() {
      private @Nullable CompleteReader complete;

      @Override
      public ExampleReader read(MemorySegment record) throws IOException {
        if (fast.reads(record)) {
          return fast;
        }
        if (complete == null) {
          complete = CompleteReader.of(features);
        }
        complete.read(record);
        return complete;
      }
    };
  }

  /// How many steps a feature list has; -1 if the record lacks the list.
  long steps(int feature);

  /// Returns a feature that has no steps.
  FeatureValue value(int feature);

  /// Returns a step of a feature list; steps must be asked for in order, from the first.
  FeatureValue step(int feature, long step);
}
