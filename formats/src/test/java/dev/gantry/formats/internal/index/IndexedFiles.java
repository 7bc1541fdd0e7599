// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.NoLeaks;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Three indexed files, of which one has no records.
@ExtendWith(NoLeaks.class)
abstract class IndexedFiles {
  static final int FIRST = 6;
  static final int SECOND = 4;

  @TempDir Path folder;
  final GantrySession session = GantrySession.open();
  final List<Path> files = new ArrayList<>();

  @BeforeEach
  void write() {
    file("a", 1, FIRST);
    file("empty", 0, 0);
    file("b", 2, SECOND);
  }

  @AfterEach
  void close() {
    session.close();
  }

  void file(String name, long seed, int records) {
    files.add(index(TestExamples.write(session, folder.resolve(name), seed, records)));
  }

  Path index(Path file) {
    TfRecordIndex.build(file, TfRecordIndex.Options.defaults(), session);
    return file;
  }

  TfRecordCatalogue open(TfRecordField... fields) {
    return TfRecordCatalogue.open(
        files.stream().map(Location::of).toList(), List.of(fields), session);
  }
}
