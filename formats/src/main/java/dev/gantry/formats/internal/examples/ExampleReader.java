// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Reads the wanted features of one record after the other. They are known by their numbers. What is
/// given is valid until the next step or record. Not thread-safe.
interface ExampleReader {
  /// Chooses the reader of a record.
  @FunctionalInterface
  interface Choice {
    /// @return a reader that has read the record
    /// @throws IOException if the record is no such message
    ExampleReader read(MemorySegment record) throws IOException;
  }

  /// The fast one where the record is written the usual way, else the complete one.
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

  /// How many steps a feature list has; -1 where there is none of the name.
  long steps(int feature);

  /// A feature that is not of several steps.
  FeatureValue value(int feature);

  /// A step of a feature list; to be asked for in order, from the first.
  FeatureValue step(int feature, long step);
}
