// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.result;

import java.util.List;

/// One load, looked at closely.
///
/// @param what was loaded
/// @param stages one after the other, from the call to the end
/// @param spans what each thread did, from the load's start on
/// @param absence why there are no spans; empty where there are
public record Trace(
    String what, Heat heat, long bytes, List<Stage> stages, List<Span> spans, String absence) {
  /// No load was traced.
  public static Trace none(String reason) {
    return new Trace("", Heat.NONE, 0, List.of(), List.of(), reason);
  }

  public Trace {
    stages = List.copyOf(stages);
    spans = List.copyOf(spans);
  }

  /// A part of a load's time.
  public record Stage(String name, double millis) {}

  /// One activity of a thread, from its start to its end.
  ///
  /// @param kind such as `Read` or `Wait`
  /// @param from in milliseconds since the load's start
  public record Span(String thread, String kind, double from, double to) {}
}
