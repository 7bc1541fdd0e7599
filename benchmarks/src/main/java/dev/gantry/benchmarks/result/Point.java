// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.result;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/// One point: what was measured, again and again.
///
/// @param name of the contender, or of the ceiling
/// @param what it worked on, such as `512 MiB in 1 tensor`
/// @param bytes of one run
/// @param repeats GB/s of each run that counts, in order; one or more
/// @param ceiling name of the ceiling that it is compared with; empty for none
/// @param parameters such as `requestBytes` and `threads`
/// @param note what a reader must know of it; may be empty
public record Point(
    Group group,
    String name,
    String what,
    Heat heat,
    long bytes,
    List<Double> repeats,
    String ceiling,
    Map<String, Long> parameters,
    String note) {
  public static final String REQUEST_BYTES = "requestBytes";
  public static final String THREADS = "threads";

  public Point {
    repeats = List.copyOf(repeats);
    parameters = Collections.unmodifiableMap(new TreeMap<>(parameters));
  }

  public Spread spread() {
    return Spread.of(repeats);
  }

  public double median() {
    return spread().median();
  }

  public long parameter(String key) {
    return parameters.getOrDefault(key, 0L);
  }
}
