// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.result;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/// One point of a result: a contender or ceiling that was measured several times.
///
/// @param name the name of the contender or ceiling
/// @param what the data of each run, such as `512 MiB in 1 tensor`
/// @param bytes the number of bytes of one run
/// @param repeats the rate of each counted run in GB/s, in order; one or more
/// @param ceiling the name of the ceiling to compare with; empty for none
/// @param parameters the parameters of the run, such as `requestBytes` and `threads`
/// @param note a remark for readers of the point; may be empty
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
