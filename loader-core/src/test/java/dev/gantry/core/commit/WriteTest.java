package dev.gantry.core.commit;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Crc32c;
import dev.gantry.core.Extent;
import dev.gantry.core.Gantry;
import dev.gantry.core.testing.NoLeaks;
import dev.gantry.core.testing.TestFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

@ExtendWith(NoLeaks.class)
class WriteTest {
  @TempDir Path folder;

  @Test
  void partsOfAllKindsBecomeOneFile() throws IOException {
    byte[] heap = TestFiles.bytes(1, 100);
    byte[] direct = TestFiles.bytes(2, 300_001);
    Path other = TestFiles.write(folder.resolve("other"), 3, 50_000);
    try (Gantry gantry = Gantry.open();
        Arena arena = Arena.ofShared()) {
      MemorySegment segment =
          arena.allocate(direct.length, 4096).copyFrom(MemorySegment.ofArray(direct));
      Path target = folder.resolve("target");
      WriteReport report =
          gantry.write(
              List.of(
                  new NewFile(
                      target,
                      List.of(
                          new Source.HostMemory(MemorySegment.ofArray(heap)),
                          new Source.HostMemory(segment),
                          new Source.FilePart(new Extent(other, 11, 40_000))))),
              WriteOptions.defaults().withRequestBytes(16 << 10));
      byte[] written = Files.readAllBytes(target);
      assertThat(written).hasSize(340_101);
      assertThat(written).startsWith(heap);
      assertThat(Arrays.copyOfRange(written, 100, 300_101)).isEqualTo(direct);
      assertThat(report.files().getFirst().checksums().orElseThrow().file())
          .isEqualTo(Crc32c.of(MemorySegment.ofArray(written)));
      assertThat(folder).isDirectoryNotContaining(TemporaryName::is);
    }
  }
}
