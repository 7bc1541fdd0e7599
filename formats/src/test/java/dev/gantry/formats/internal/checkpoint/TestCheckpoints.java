// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.DType;
import dev.gantry.core.Memory;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.internal.files.FolderLock;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.CRC32C;

/// Small checkpoints of several data files and two groups, whose bytes the step and the version
/// determine; and the check that a checkpoint on the disk has these bytes.
final class TestCheckpoints {
  /// The size of a data file, with which the model has two.
  static final long SHARD_BYTES = 12_000;

  private static final String VERSION = "version";

  private TestCheckpoints() {}

  /// The identity of a checkpoint: a step that is saved again has another version.
  record Name(long step, long version) {
    static Name of(CheckpointFolder stored) {
      String version = Optional.ofNullable(stored.manifest().state().get(VERSION)).orElseThrow();
      return new Name(stored.step(), Long.parseLong(version));
    }

    UnsavedCheckpoint unsaved() {
      return TestCheckpoints.unsaved(step, version, tensors());
    }

    /// Returns the bytes of each tensor by group and name.
    SequencedMap<String, SequencedMap<String, byte[]>> tensors() {
      long seed = step * 1_000_000 + version * 1000;
      SequencedMap<String, byte[]> model = new LinkedHashMap<>();
      model.put("first", TestFiles.bytes(seed, 4 * 1000));
      model.put("second", TestFiles.bytes(seed + 1, 4 * 1500));
      model.put("third", TestFiles.bytes(seed + 2, 4 * 700));
      SequencedMap<String, byte[]> optimizer = new LinkedHashMap<>();
      optimizer.put("first.mean", TestFiles.bytes(seed + 3, 4 * 1000));
      SequencedMap<String, SequencedMap<String, byte[]>> groups = new LinkedHashMap<>();
      groups.put("model", model);
      groups.put("optimizer", optimizer);
      return groups;
    }
  }

  static UnsavedCheckpoint unsaved(long step) {
    return new Name(step, 0).unsaved();
  }

  /// @param tensors the tensors by group and name; not copied
  static UnsavedCheckpoint unsaved(
      long step, long version, SequencedMap<String, SequencedMap<String, byte[]>> tensors) {
    SequencedMap<String, List<NewTensor>> groups = new LinkedHashMap<>();
    tensors.forEach((group, byName) -> {
      List<NewTensor> list = new ArrayList<>();
      byName.forEach((name, bytes) ->
          list.add(
              new NewTensor(
                  name,
                  DType.F32,
                  TensorShape.of(bytes.length / Float.BYTES),
                  new Memory.OnHost(MemorySegment.ofArray(bytes)))));
      groups.put(group, list);
    });
    return new UnsavedCheckpoint(
        step,
        groups,
        Map.of(VERSION, Long.toString(version)),
        Map.of("loss", 1.0 / (step + 1)),
        Map.of("note", "a test"));
  }

  /// Returns options for small requests by one writer, which give the same calls each time.
  static WriteOptions options() {
    return WriteOptions.defaults().withRequestBytes(8192).withThreads(1);
  }

  static Retention last(int count) {
    return new Retention(count, 0, Optional.empty());
  }

  static CheckpointStore open(GantrySession session, Path root, Retention retention) {
    return CheckpointStore.open(session, root, retention, SHARD_BYTES);
  }

  static List<Name> names(Path root) {
    return CheckpointStore.list(GantrySession.shared(), root).checkpoints().stream()
        .map(Name::of)
        .toList();
  }

  static List<Long> steps(Path root) {
    return CheckpointStore.list(GantrySession.shared(), root).checkpoints().stream()
        .map(CheckpointFolder::step)
        .toList();
  }

  /// Requires that all listed checkpoints are complete and that none is damaged.
  static List<Name> requireAllWhole(Path root, String where) {
    CheckpointListing listing = CheckpointStore.list(GantrySession.shared(), root);
    assertThat(listing.damaged()).as(where).isEmpty();
    listing.checkpoints().forEach(stored -> requireWhole(stored, where));
    return listing.checkpoints().stream().map(Name::of).toList();
  }

  /// Requires that every byte and every checksum is the saved one.
  static void requireWhole(CheckpointFolder stored, String where) {
    String what = stored.folder().getFileName() + ": " + where;
    for (Manifest.FileEntry entry : stored.manifest().files()) {
      byte[] bytes = bytes(stored.folder().resolve(entry.name()));
      assertThat(bytes.length).as(what).isEqualTo((int) entry.size());
      assertThat(sum(bytes)).as("%s of %s", entry.name(), what).isEqualTo(entry.crc32c());
    }
    Name.of(stored)
        .tensors()
        .forEach((group, expected) -> {
          SequencedMap<String, StoredTensor> found = stored.open(group).tensors();
          assertThat(found.keySet()).as(what).isEqualTo(expected.keySet());
          expected.forEach((name, bytes) -> {
            StoredTensor tensor = Optional.ofNullable(found.get(name)).orElseThrow();
            byte[] onDisk = TestFiles.expected(tensor.extent());
            assertThat(Arrays.equals(onDisk, bytes)).as("'%s' of %s", name, what).isTrue();
            stored.check(tensor, sum(onDisk));
          });
        });
  }

  private static byte[] bytes(Path file) {
    try {
      return Files.readAllBytes(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static int sum(byte[] bytes) {
    CRC32C sum = new CRC32C();
    sum.update(bytes);
    return (int) sum.getValue();
  }

  /// Requires that the folder has only the files of the listed manifests.
  static void requireNoLeftovers(Path root, String where) {
    Set<Path> expected = new TreeSet<>(Set.of(root.resolve(FolderLock.FILE_NAME)));
    for (CheckpointFolder stored :
        CheckpointStore.list(GantrySession.shared(), root).checkpoints()) {
      expected.add(stored.folder());
      expected.add(StoreFolder.manifest(stored.folder()));
      stored
          .manifest()
          .files()
          .forEach(entry -> expected.add(stored.folder().resolve(entry.name())));
    }
    assertThat(tree(root)).as(where).isEqualTo(expected);
  }

  /// Returns all paths below a folder.
  static Set<Path> tree(Path root) {
    try (Stream<Path> paths = Files.walk(root)) {
      return paths
          .filter(path -> !path.equals(root))
          .collect(Collectors.toCollection(TreeSet::new));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static void delete(Path root) {
    try (Stream<Path> paths = Files.walk(root)) {
      for (Path path : paths.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(path);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static void copy(Path from, Path to) {
    try (Stream<Path> paths = Files.walk(from)) {
      for (Path path : paths.sorted().toList()) {
        Files.copy(path, to.resolve(from.relativize(path).toString()));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
