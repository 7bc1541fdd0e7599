// SPDX-License-Identifier: Apache-2.0
package dev.gantry.fuzz;

import dev.gantry.cli.internal.parquet.ParquetToShards;
import dev.gantry.core.CuFileConfig;
import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.shards.ShardOptions;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// Parsers of settings, names and tables.
final class Texts {
  private Texts() {}

  /// Reads a location, which must be written as it was read.
  static void location(byte[] input) {
    Location location = Location.of(text(input));
    String _ = location.fileName();
    Location again = Location.of(location.toString());
    if (location instanceof Location.Local && !again.equals(location)) {
      throw new AssertionError(location + " is read as " + again);
    }
  }

  /// Reads settings of libcufile. Each line has a key, a space and a value; commas make lists.
  static void cuFile(byte[] input) {
    Map<String, Object> settings = new LinkedHashMap<>();
    text(input)
        .lines()
        .limit(50)
        .forEach(line -> {
          int space = Math.max(0, line.indexOf(' '));
          String value = line.substring(Math.min(line.length(), space + 1));
          List<Object> all = new ArrayList<>();
          for (String each : value.split(",", -1)) {
            all.add(typed(each));
          }
          settings.put(line.substring(0, space), all.size() == 1 ? all.getFirst() : all);
        });
    String _ = CuFileConfig.of(settings).json();
  }

  private static Object typed(String value) {
    if (value.matches("-?\\d{1,18}")) {
      return Long.parseLong(value);
    }
    return value.equals("true") || value.equals("false") ? Boolean.valueOf(value) : value;
  }

  /// Reads a table of Parquet as shards.
  static void parquet(byte[] input) throws Exception {
    Path file = Places.file("t.parquet", input);
    Path output = Places.folder("converted", Map.of());
    var _ =
        new ParquetToShards(List.of(file), List.of(), output.resolve("out"))
            .run(GantrySession.shared(), ShardOptions.defaults().withShardBytes(1 << 20));
  }

  private static String text(byte[] input) {
    return new String(input, StandardCharsets.UTF_8);
  }
}
