// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.index.TfRecordIndex.Found.Unusable;
import dev.gantry.formats.internal.index.TfRecordIndex.Found.Usable;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Indexes that were damaged after they were written.
@ExtendWith(NoLeaks.class)
@Tag("beside")
class IndexDamageTest {
  /// The offset of the tensors' bytes in an index of few features.
  private static final int DATA = 4096;

  @TempDir Path folder;
  private final GantrySession session = GantrySession.open();
  private Path file;
  private Path index;
  private byte[] good;

  @BeforeEach
  void write() throws IOException {
    file = TestExamples.write(session, folder.resolve("data"), 5, 3);
    TfRecordIndex.build(file, TfRecordIndex.Options.defaults(), session);
    index = TfRecordIndex.indexFile(file);
    good = Files.readAllBytes(index);
  }

  @AfterEach
  void close() {
    session.close();
  }

  /// Returns the next byte to damage: every byte, except that only one in 64 of the header's
  /// padding spaces is damaged.
  private int next(int at) {
    return at + 64 < DATA && good[at] == ' ' && good[at + 64] == ' ' ? at + 64 : at + 1;
  }

  private MalformedFileException damage() {
    return catchThrowableOfType(
        MalformedFileException.class, () -> TfRecordIndex.open(file, session));
  }

  @Test
  void everyBitThatFlipsIsRefused() throws IOException {
    for (int at = 0; at < good.length; at = next(at)) {
      for (int bit = 0; bit < Byte.SIZE; bit++) {
        byte[] bad = good.clone();
        bad[at] ^= (byte) (1 << bit);
        Files.write(index, bad);
        requireRefused("bit " + bit + " of byte " + at);
      }
    }
    assertThat(NoLeaks.held()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  private void requireRefused(String where) {
    try {
      switch (TfRecordIndex.open(file, session)) {
        case Usable(TfRecordIndex opened) -> {
          opened.close();
          throw new AssertionError(where + " is not missed");
        }
        // The version is checked first, because all else may depend on it.
        case Unusable(String reason) -> assertThat(reason).as(where).contains("is of version");
      }
    } catch (MalformedFileException damaged) {
      assertThat(damaged.file()).as(where).isEqualTo(Location.of(index));
    }
  }

  @Test
  void whereverItIsCutOffItIsRefused() throws IOException {
    for (int length = 0; length < good.length; length = next(length)) {
      Files.write(index, Arrays.copyOf(good, length));
      assertThat(damage()).as("%s bytes", length).isNotNull();
    }
    Files.write(index, Arrays.copyOf(good, good.length + 1));
    assertThat(damage().kind()).isEqualTo("trailing-bytes");
  }

  @Test
  void aDamagedOneIsBuiltAgain() throws IOException {
    Files.write(index, new byte[0]);
    assertThat(damage()).isNotNull();
    TfRecordIndex.build(file, TfRecordIndex.Options.defaults(), session);
    assertThat(Files.readAllBytes(index)).isEqualTo(good);
  }
}
