// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Source;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.MemoryFolder;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.internal.safetensors.SafetensorsHeader;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.Optional;
import java.util.function.Consumer;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Checkpoints that were damaged after they were saved.
@ExtendWith(NoLeaks.class)
@Tag("jdk-files")
class CheckpointFolderTest {
  @TempDir(factory = MemoryFolder.class)
  Path parent;

  private final GantrySession session = GantrySession.open();
  private Path root;
  private CheckpointFolder stored;

  @BeforeEach
  void save() {
    root = parent.resolve("run");
    try (CheckpointStore store = TestCheckpoints.open(session, root, Retention.ALL)) {
      store.save(TestCheckpoints.unsaved(1), TestCheckpoints.options());
      stored = store.save(TestCheckpoints.unsaved(2), TestCheckpoints.options()).checkpoint();
    }
  }

  @AfterEach
  void close() {
    session.close();
  }

  private StoredTensor tensor(String name) {
    return Optional.ofNullable(stored.open("model").tensors().get(name)).orElseThrow();
  }

  private static MalformedFileException refusal(ThrowingCallable call) {
    return catchThrowableOfType(MalformedFileException.class, call);
  }

  @Test
  void eachFileMissingShorterOrLonger() throws IOException {
    for (Manifest.FileEntry entry : stored.manifest().files()) {
      Path file = stored.folder().resolve(entry.name());
      byte[] bytes = Files.readAllBytes(file);
      Files.delete(file);
      requireRefused(file, "missing-file");
      Files.write(file, Arrays.copyOf(bytes, bytes.length - 1));
      requireRefused(file, "wrong-size");
      Files.write(file, Arrays.copyOf(bytes, bytes.length + 1));
      requireRefused(file, "wrong-size");
      Files.write(file, bytes);
      TestCheckpoints.requireWhole(stored, "put back");
    }
  }

  /// Requires that every group is refused, because a part of a checkpoint is no checkpoint.
  private void requireRefused(Path file, String kind) {
    for (String group : new String[] {"model", "optimizer"}) {
      MalformedFileException refusal = refusal(() -> stored.open(group));
      assertThat(refusal).as(file.toString()).isNotNull();
      assertThat(refusal.kind()).isEqualTo(kind);
      assertThat(refusal.file()).isEqualTo(Location.of(file));
    }
  }

  @Test
  void aFlippedBitIsFoundAndNamed() throws IOException {
    for (String name : new String[] {"first", "second", "third"}) {
      Extent whole = tensor(name).extent();
      for (long offset : new long[] {whole.offset(), whole.end() - 1}) {
        flip(whole.file().path(), offset);
        StoredTensor tensor = tensor(name);
        Extent extent = tensor.extent();
        int sum = session.checksum(new Source.FilePart(extent));
        MalformedFileException refusal = refusal(() -> stored.check(tensor, sum));
        assertThat(refusal.kind()).isEqualTo("checksum-mismatch");
        assertThat(refusal.file()).isEqualTo(extent.file());
        assertThat(refusal.offset()).isEqualTo(extent.offset());
        assertThat(refusal).hasMessageContaining("'" + name + "'");
        flip(extent.file().path(), offset);
      }
    }
    TestCheckpoints.requireWhole(stored, "flipped back");
  }

  private static void flip(Path file, long offset) throws IOException {
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      ByteBuffer one = ByteBuffer.allocate(1);
      channel.read(one, offset);
      one.put(0, (byte) (one.get(0) ^ 1)).flip();
      channel.write(one, offset);
    }
  }

  @Test
  void aTensorThatTheManifestDoesNotKnow() {
    StoredTensor first = tensor("first");
    StoredTensor other = new StoredTensor("other", first.dtype(), first.shape(), first.extent());
    assertThat(refusal(() -> stored.check(other, 0)).kind()).isEqualTo("checksum-missing");
  }

  @Test
  void aDamagedManifestIsToldAndTheOthersAreListed() throws IOException {
    Path manifest = StoreFolder.manifest(stored.folder());
    Files.write(manifest, new byte[] {'{'});
    CheckpointListing listing = CheckpointStore.list(GantrySession.shared(), root);
    assertThat(listing.damaged())
        .singleElement()
        .returns(Location.of(manifest), MalformedFileException::file);
    assertThat(TestCheckpoints.steps(root)).containsExactly(1L);
    // The damaged checkpoint stays, so that its intact parts can be rescued; the next save gets
    // another name.
    try (CheckpointStore store = TestCheckpoints.open(session, root, TestCheckpoints.last(1))) {
      store.save(TestCheckpoints.unsaved(2), TestCheckpoints.options());
      store.save(TestCheckpoints.unsaved(2), TestCheckpoints.options());
    }
    assertThat(manifest).exists();
    assertThat(TestCheckpoints.steps(root)).containsExactly(2L);
  }

  /// The damage is anywhere but in the tensors' bytes, which [CheckpointFolder#check] verifies.
  @Test
  void anyBitOfHeadersIndexAndManifest() throws IOException {
    for (Manifest.FileEntry entry : stored.manifest().files()) {
      if (entry.name().startsWith("model")) {
        Path file = stored.folder().resolve(entry.name());
        int end =
            entry.name().endsWith(".json")
                ? Math.toIntExact(entry.size())
                : Math.toIntExact(SafetensorsHeader.read(GantrySession.shared(), file).dataStart());
        forEachFlip(
            file, end, at -> assertThat(refusal(() -> stored.open("model"))).as(at).isNotNull());
      }
    }
    Path manifest = StoreFolder.manifest(stored.folder());
    forEachFlip(
        manifest,
        Math.toIntExact(Files.size(manifest)),
        at ->
            assertThat(CheckpointStore.list(GantrySession.shared(), root).damaged())
                .as(at)
                .hasSize(1));
  }

  private static void forEachFlip(Path file, int end, Consumer<String> check) throws IOException {
    byte[] bytes = Files.readAllBytes(file);
    // One bit of every third byte is flipped, because most of a header is padding.
    for (int at = 0; at < end; at += 3) {
      byte[] damaged = bytes.clone();
      damaged[at] ^= (byte) (1 << (at % 7));
      Files.write(file, damaged);
      check.accept(file.getFileName() + ", byte " + at);
    }
    Files.write(file, bytes);
  }
}
