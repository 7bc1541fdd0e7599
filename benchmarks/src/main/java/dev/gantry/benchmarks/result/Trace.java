// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.result;

import java.util.List;

/// A trace of one load.
///
/// @param what the data that was loaded
/// @param bytes the number of loaded bytes
/// @param stages the consecutive stages of the load, from the call to the end
/// @param spans the activities of each thread, from the load's start on
/// @param absence the reason why there are no spans; empty if there are spans
public record Trace(
    String what, Heat heat, long bytes, List<Stage> stages, List<Span> spans, String absence) {
  /// Makes a trace without a load.
  public static Trace none(String reason) {
    return new Trace("", Heat.NONE, 0, List.of(), List.of(), reason);
  }

  public Trace {
    stages = List.copyOf(stages);
    spans = List.copyOf(spans);
  }

  /// A stage of a load, and its duration.
  public record Stage(String name, double millis) {}

  /// One activity of a thread.
  ///
  /// @param kind the kind of activity, such as `Read` or `Wait`
  /// @param from the start in milliseconds since the load's start
  /// @param to the end in milliseconds since the load's start
  public record Span(String thread, String kind, double from, double to) {}
}
