// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.output;

import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/// Describes a transfer's report, for people and as JSON.
public final class Transfers {
  private Transfers() {}

  /// Says which transports carried the bytes and how many files the cache held, as in `staged`,
  /// or `gds 80%, staged 20%, 3 files from the cache`.
  public static String transports(TransferReport report) {
    long cached = report.files().stream().filter(TransferReport.FileReport::cached).count();
    String transports = transports(report.bytesByTransport());
    return cached == 0
        ? transports
        : transports + ", " + cached + (cached == 1 ? " file" : " files") + " from the cache";
  }

  /// Says which transports carried the bytes, as in `staged`, or `gds 80%, staged 20%`.
  public static String transports(Map<Transport, Long> bytesByTransport) {
    if (bytesByTransport.size() == 1) {
      return bytesByTransport.keySet().iterator().next().toString();
    }
    long bytes = bytesByTransport.values().stream().mapToLong(Long::longValue).sum();
    return bytesByTransport.entrySet().stream()
        .sorted(Map.Entry.comparingByKey())
        .map(entry -> entry.getKey() + " " + percent(entry.getValue(), bytes))
        .collect(Collectors.joining(", "));
  }

  public static String percent(long part, long whole) {
    return whole == 0 ? "-" : Math.round(100.0 * part / whole) + "%";
  }

  /// Returns the number of bytes that each transport carried, for JSON.
  public static Object json(TransferReport transfer) {
    return Json.byName(List.of(Transport.values()), Transport::toString, transfer::bytes);
  }
}
