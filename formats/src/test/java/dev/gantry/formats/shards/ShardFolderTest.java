// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.ForwardingFileCalls;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Writers of shards keep foreign files in a folder, and remove files that other writers of shards
/// have left.
@ExtendWith(NoLeaks.class)
class ShardFolderTest {
  private static final int SAMPLES = 7;

  @TempDir Path parent;
  private final GantrySession session = GantrySession.open();
  private final Map<String, byte[]> values = TestShards.values(TestShards.FIELDS, 1, SAMPLES);

  @AfterEach
  void close() {
    session.close();
  }

  private Path folder() {
    return parent.resolve("set");
  }

  private Path unfinished() {
    return folder().resolve(".gantry-unfinished");
  }

  private ShardWriter writer(GantrySession gantry) {
    return ShardWriter.create(gantry, folder(), TestShards.FIELDS, TestShards.options());
  }

  private void write() {
    try (ShardWriter writer = writer(session)) {
      TestShards.append(writer, values, SAMPLES);
      writer.finish();
    }
  }

  private void writeArrays() {
    ShardWriter.write(
        session,
        folder(),
        TestShards.FIELDS,
        SAMPLES,
        TestShards.sources(TestShards.FIELDS, values, 0, SAMPLES),
        TestShards.options());
  }

  private void requireRefusedBecauseOf(String name) {
    for (Runnable writing : new Runnable[] {this::write, this::writeArrays}) {
      assertThatThrownBy(writing::run)
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining(folder().resolve(name).toString())
          .hasMessageContaining("another program")
          .hasMessageContaining("shards.json is missing");
    }
  }

  private void requireOnlyTheSet() {
    TestShards.requireWhole(folder(), TestShards.FIELDS, values, SAMPLES, "");
    assertThat(TestShards.names(folder()))
        .containsExactly("shard-00000.bin", "shard-00001.bin", "shard-00002.bin", "shards.json");
  }

  @ParameterizedTest
  @ValueSource(strings = {"shard-00000.bin", "shard-00042.bin"})
  void anotherProgramsFileStaysAndTheWriterIsRefused(String name) throws IOException {
    Path others = Files.createDirectory(folder()).resolve(name);
    Files.writeString(others, "mine");
    requireRefusedBecauseOf(name);
    assertThat(others).hasContent("mine");
    assertThat(TestShards.names(folder())).containsExactly(name);
  }

  @Test
  void aSetWhoseIndexIsNotCopiedYetStays() throws IOException {
    write();
    Path index = folder().resolve("shards.json");
    byte[] bytes = Files.readAllBytes(index);
    Files.delete(index);
    requireRefusedBecauseOf("shard-00000.bin");
    Files.write(index, bytes);
    requireOnlyTheSet();
  }

  @Test
  void temporaryFilesOfOtherWritersStay() throws IOException {
    String name = ".gantry-0123456789abcdef.tmp";
    Files.writeString(Files.createDirectory(folder()).resolve(name), "of a writer at work");
    write();
    assertThat(folder().resolve(name)).hasContent("of a writer at work");
  }

  @Test
  void linksAreNeitherFollowedNorRemoved() throws IOException {
    Path precious = Files.writeString(parent.resolve("precious"), "mine");
    Path elsewhere = Files.createDirectory(parent.resolve("elsewhere"));
    Path shard = Files.writeString(elsewhere.resolve("shard-00000.bin"), "mine");
    Files.createDirectory(folder());
    Path link = Files.createSymbolicLink(folder().resolve("shard-00000.bin"), precious);
    requireRefusedBecauseOf("shard-00000.bin");
    assertThat(link).isSymbolicLink();
    Files.delete(link);
    Path work = Files.createSymbolicLink(unfinished(), elsewhere);
    assertThatThrownBy(this::write)
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining(".gantry-unfinished exists and is not a folder");
    assertThat(work).isSymbolicLink();
    Files.delete(work);
    Files.createSymbolicLink(Files.createDirectory(work).resolve("shard-00007.bin"), precious);
    write();
    assertThat(unfinished().resolve("shard-00007.bin")).isSymbolicLink();
    assertThat(precious).hasContent("mine");
    assertThat(shard).hasContent("mine");
  }

  @Test
  void whatACrashOfOursLeftGoes() throws IOException {
    Files.createDirectories(unfinished());
    Files.write(unfinished().resolve("shard-00000.bin"), new byte[9000]);
    Files.write(unfinished().resolve("shard-00009.bin"), new byte[10]);
    Files.write(unfinished().resolve(".gantry-0123456789abcdef.tmp"), new byte[10]);
    Files.write(folder().resolve(".gantry.lock"), new byte[0]);
    write();
    requireOnlyTheSet();
  }

  /// The folder looks as after a crash during the renames: the unfinished index shows which shards
  /// a writer has made.
  @Test
  void shardsThatACrashOfOursLeftUnderTheirNamesGoButOthersStay() throws IOException {
    writeArrays();
    Files.createDirectory(unfinished());
    Files.move(folder().resolve("shards.json"), unfinished().resolve("shards.json"));
    Path added = Files.writeString(folder().resolve("shard-00003.bin"), "mine");
    requireRefusedBecauseOf("shard-00003.bin");
    Files.delete(added);
    Path replaced = Files.writeString(folder().resolve("shard-00001.bin"), "mine");
    requireRefusedBecauseOf("shard-00001.bin");
    assertThat(replaced).hasContent("mine");
    Files.delete(replaced);
    write();
    requireOnlyTheSet();
  }

  @Test
  void aSecondWriterOfAFolderIsRefusedAndTheFirstGoesOn() {
    try (ShardWriter first = writer(session)) {
      TestShards.append(first, values, 4);
      for (Runnable second : new Runnable[] {this::write, this::writeArrays}) {
        assertThatThrownBy(second::run)
            .isInstanceOf(MisuseException.class)
            .hasMessage("another writer of samples uses " + folder());
      }
      first.append(3, TestShards.sources(TestShards.FIELDS, values, 4, 3));
      first.finish();
      requireOnlyTheSet();
    }
    assertThatThrownBy(this::write).hasMessageContaining("holds samples already");
  }

  @Test
  void afterAWriterThatGaveUpAnotherMayWrite() {
    writer(session).close();
    assertThat(folder()).doesNotExist();
    write();
    requireOnlyTheSet();
  }

  /// Another program may write such a file between the first shard and the index.
  @ParameterizedTest
  @ValueSource(strings = {"shard-00001.bin", "shards.json"})
  void whatIsMadeMeanwhileIsNotReplaced(String name) {
    ForwardingFileCalls calls =
        new ForwardingFileCalls(Libc.INSTANCE) {
          @Override
          public int rename(Path from, Path to) {
            if (to.equals(folder().resolve("shard-00000.bin"))) {
              try {
                Files.writeString(folder().resolve(name), "mine");
              } catch (IOException e) {
                throw new IllegalStateException(e);
              }
            }
            return super.rename(from, to);
          }
        };
    try (GantrySession gantry = Sessions.over(calls);
        ShardWriter writer = writer(gantry)) {
      TestShards.append(writer, values, SAMPLES);
      assertThatThrownBy(writer::finish)
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining(name + " was made by another program meanwhile");
    }
    assertThat(folder().resolve(name)).hasContent("mine");
    assertThat(TestShards.names(folder())).containsExactly(name);
  }

  @Test
  void theFolderIsMadeWithThoseAboveItAndTakenBack() {
    Path deep = parent.resolve("a/b/set");
    ShardWriter.create(session, deep, TestShards.FIELDS, TestShards.options()).close();
    assertThat(parent).isEmptyDirectory();
    try (ShardWriter writer =
        ShardWriter.create(session, deep, TestShards.FIELDS, TestShards.options())) {
      TestShards.append(writer, values, SAMPLES);
      writer.finish();
    }
    TestShards.requireWhole(deep, TestShards.FIELDS, values, SAMPLES, "");
  }
}
