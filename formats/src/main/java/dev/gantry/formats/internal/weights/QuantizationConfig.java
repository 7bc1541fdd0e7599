// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.weights;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.convert.ScaleShapes;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.json.JsonReader;
import dev.gantry.formats.spi.FileBytes;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// Reads what a model's `config.json` says of its quantised tensors: `quantization_config` with
/// `weight_block_size`, the rows and columns that share a scale.
public final class QuantizationConfig {
  private static final String FILE_NAME = "config.json";
  private static final long MAX_BYTES = 16 << 20;

  private QuantizationConfig() {}

  /// Reads the size of a block from the configuration beside a data file; empty if there is no
  /// configuration, or it has no size.
  ///
  /// @throws MalformedFileException if the configuration is no JSON object, or the size is no pair of
  ///     positive numbers
  public static Optional<ScaleShapes.Block> blockSize(GantrySession session, Location dataFile) {
    FileBytes file;
    try {
      file = FileBytes.open(session, dataFile.sibling(FILE_NAME));
    } catch (TransferException absent) {
      return Optional.empty();
    }
    try (file) {
      if (file.length() > MAX_BYTES) {
        throw new MalformedFileException(
            file.file(), 0, "too-large", "more than " + MAX_BYTES + " bytes of configuration");
      }
      JsonReader json = new JsonReader(file, 0, file.length());
      Optional<ScaleShapes.Block> found = Optional.empty();
      json.require(JsonReader.Kind.OBJECT, "no-object", "a configuration is a JSON object");
      for (boolean more = json.beginObject(); more; more = json.nextMember()) {
        if (json.memberName().equals("quantization_config")
            && json.peek() == JsonReader.Kind.OBJECT) {
          found = ofQuantization(json);
        } else {
          json.skip();
        }
      }
      json.end();
      return found;
    }
  }

  private static Optional<ScaleShapes.Block> ofQuantization(JsonReader json) {
    Optional<ScaleShapes.Block> found = Optional.empty();
    for (boolean more = json.beginObject(); more; more = json.nextMember()) {
      if (json.memberName().equals("weight_block_size") && json.peek() == JsonReader.Kind.ARRAY) {
        List<Long> sizes = new ArrayList<>();
        for (boolean next = json.beginArray(); next; next = json.nextElement()) {
          json.require(
              JsonReader.Kind.NUMBER, "weight-block-size", "weight_block_size holds numbers");
          sizes.add(json.count("a size in weight_block_size"));
        }
        if (sizes.size() != 2 || sizes.contains(0L)) {
          throw json.malformed(
              "weight-block-size",
              "weight_block_size must be two positive numbers (was " + sizes + ")");
        }
        found = Optional.of(new ScaleShapes.Block(sizes.get(0), sizes.get(1)));
      } else {
        json.skip();
      }
    }
    return found;
  }
}
