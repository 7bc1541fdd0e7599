// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Session;
import dev.gantry.core.TransferException;
import dev.gantry.formats.internal.json.JsonReader;
import dev.gantry.formats.spi.FileBytes;
import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.SequencedMap;

/// The contents of a checkpoint's `manifest.json`. Immutable.
///
/// The file has a checksum of its own: the CRC32C of all of its bytes, with zeros for the eight
/// digits of the checksum itself.
///
/// @param step the training step
/// @param sequence the number of the save among all saves of its folder, from 1: a training that was
///     restored from an earlier step saves some steps again, and the later save counts
/// @param history the saves from which the training was continued
/// @param finite false if a value of the model is NaN or infinite
/// @param state the state that a training needs besides tensors, as text of the saver's choice
/// @param metrics the metrics by name; values may be NaN or infinite
/// @param metadata the user's own notes
/// @param files all files but the manifest
public record Manifest(
    long step,
    long sequence,
    SaveHistory history,
    boolean finite,
    SequencedMap<String, String> state,
    SequencedMap<String, Double> metrics,
    SequencedMap<String, String> metadata,
    List<FileEntry> files) {
  /// The longest manifest, in bytes; a safetensors header has the same bound.
  public static final long MAX_BYTES = 100_000_000;

  /// The most files, tensors, metrics and texts in one manifest, together.
  public static final int MAX_ENTRIES = JsonReader.MAX_ENTRIES;

  static final String FORMAT = "gantry-checkpoint";

  /// The placeholder of the manifest's own checksum while the checksum is computed.
  static final String NO_CHECKSUM = "00000000";

  static final long VERSION = 1;

  public Manifest {
    state = copy(state);
    metrics = copy(metrics);
    metadata = copy(metadata);
    files = List.copyOf(files);
  }

  /// A file of a checkpoint.
  ///
  /// @param name the file's name in the checkpoint's folder
  /// @param size the file's size in bytes
  /// @param crc32c the CRC32C of the whole file
  /// @param tensors the CRC32C of each tensor's bytes, by name, in the order of the file; empty for
  ///     an index
  public record FileEntry(
      String name, long size, int crc32c, SequencedMap<String, Integer> tensors) {
    public FileEntry {
      tensors = copy(tensors);
    }
  }

  /// Returns the small part of this manifest, which is kept for every checkpoint of a folder. It
  /// lacks the texts and the files, since the tensors' checksums would take megabytes for each
  /// checkpoint.
  Manifest head() {
    return new Manifest(
        step,
        sequence,
        history,
        finite,
        Collections.emptySortedMap(),
        metrics,
        Collections.emptySortedMap(),
        List.of());
  }

  /// Reads and checks a manifest.
  ///
  /// @throws MalformedFileException if it is no manifest or damaged, with a kind for each fault
  /// @throws TransferException if the file cannot be opened or read
  public static Manifest read(Session session, Location file) {
    try (FileBytes bytes = FileBytes.open(session, file)) {
      return new ManifestParser(bytes, true).parse();
    }
  }

  /// Reads a manifest's head, without keeping the entries of the files; the manifest's own checksum is
  /// compared as well.
  static Manifest readHead(Session session, Path file) {
    try (FileBytes bytes = FileBytes.open(session, file)) {
      return new ManifestParser(bytes, false).parse().head();
    }
  }

  /// Returns the save's number of a damaged manifest, as [ManifestParser#sequence] does; empty
  /// also if the manifest is too long or is no regular file.
  static OptionalLong sequence(Session session, Path file, long step) {
    try (FileBytes bytes = FileBytes.open(session, file)) {
      return new ManifestParser(bytes, false).sequence(step);
    } catch (MalformedFileException _) {
      return OptionalLong.empty();
    }
  }

  private static <V> SequencedMap<String, V> copy(Map<String, V> map) {
    return Collections.unmodifiableSequencedMap(new LinkedHashMap<>(map));
  }
}
