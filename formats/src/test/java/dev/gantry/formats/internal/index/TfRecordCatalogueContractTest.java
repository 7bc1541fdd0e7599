// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.spi.SampleCatalogue;
import dev.gantry.formats.spi.SampleCatalogueContract;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;

class TfRecordCatalogueContractTest extends SampleCatalogueContract {
  private static final List<Integer> RECORDS = List.of(6, 0, 4);

  @TempDir Path folder;
  private final GantrySession session = GantrySession.open();

  @AfterEach
  void close() {
    session.close();
  }

  @Override
  protected SampleCatalogue open() throws IOException {
    List<Path> files = List.of(folder.resolve("a"), folder.resolve("b"), folder.resolve("c"));
    for (int i = 0; i < files.size(); i++) {
      Path file = files.get(i);
      if (!Files.exists(file)) {
        TestExamples.write(session, file, i, RECORDS.get(i));
        TfRecordIndex.build(file, TfRecordIndex.Options.defaults(), session);
      }
    }
    return TfRecordCatalogue.open(files.stream().map(Location::of).toList(), List.of(), session);
  }

  @Override
  protected byte[] value(String field, int dataFile, long sample) {
    ByteBuffer bytes = ByteBuffer.allocate(128).order(ByteOrder.LITTLE_ENDIAN);
    switch (field) {
      case "image" -> {
        return TestExamples.image(dataFile, sample);
      }
      case "floats" -> {
        for (float number : TestExamples.floats(dataFile, sample)) {
          bytes.putFloat(number);
        }
      }
      default -> {
        for (long number : TestExamples.label(dataFile, sample)) {
          bytes.putLong(number);
        }
      }
    }
    byte[] value = new byte[bytes.position()];
    bytes.flip().get(value);
    return value;
  }
}
