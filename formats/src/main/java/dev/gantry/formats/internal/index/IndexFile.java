// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Memory;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.files.NamePatterns;
import dev.gantry.formats.internal.files.UploadFolder;
import dev.gantry.formats.internal.safetensors.NewSafetensors;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.internal.safetensors.SafetensorsHeader;
import dev.gantry.formats.spi.StoredTensor;
import java.nio.file.Path;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;

/// The index that lies beside a data file of any format: a safetensors file, whose notes tell when the data
/// file was indexed, and have a checksum of each tensor.
///
/// @param file the data file
/// @param index the location of its index
public record IndexFile(Location file, Location index, GantrySession session) {
  /// The suffix that makes a file's name that of its index.
  public static final String SUFFIX = NamePatterns.INDEX_SUFFIX;

  /// The index of a file, which need not exist.
  public static IndexFile of(Location file, GantrySession session) {
    return new IndexFile(file, file.sibling(file.fileName() + SUFFIX), session);
  }

  /// The data file as it is now.
  ///
  /// @param written when a remote index was written; empty for a local one
  public record State(FileStamp stamp, Object identity, Optional<Instant> written) {}

  /// Looks at the data file.
  ///
  /// @return empty if it is remote, and its index is not there
  /// @throws TransferException if the data file is not there
  public Optional<State> look() {
    return switch (file) {
      case Location.Local(var path, _) -> {
        SourceFile.Identity identity = SourceFile.Identity.look(path);
        yield Optional.of(new State(FileStamp.of(identity), identity, Optional.empty()));
      }
      case Location.Remote _ -> {
        try (SourceFile opened = session.openFile(file)) {
          yield written()
              .map(time -> new State(FileStamp.of(opened), opened.identity(), Optional.of(time)));
        }
      }
    };
  }

  private Optional<Instant> written() {
    try (SourceFile beside = session.openFile(index)) {
      // Without a time the index counts as older than the file.
      return Optional.of(beside.modified().orElse(Instant.EPOCH));
    } catch (TransferException e) {
      if (e.isNotFound()) {
        return Optional.empty();
      }
      throw e;
    }
  }

  /// Reads the header of the index; empty if there is no index.
  public Optional<SafetensorsHeader> header() {
    try {
      return Optional.of(SafetensorsHeader.read(session, index));
    } catch (TransferException e) {
      if (e.isNotFound()) {
        return Optional.empty();
      }
      throw e;
    }
  }

  /// The tensors of an index in memory. The caller closes it.
  ///
  /// @param columns by the tensors' names
  public record Mapped(Loaded memory, Map<String, MappedColumn> columns) implements AutoCloseable {
    @Override
    public void close() {
      memory.close();
    }
  }

  /// Maps the tensors of a local index, or loads those of a remote one, and compares their checksums.
  ///
  /// @param checksums by the tensors' names
  /// @throws MalformedFileException of kind `checksum-mismatch`
  public Mapped map(SafetensorsHeader header, Map<String, Integer> checksums) {
    List<StoredTensor> tensors = List.copyOf(header.tensors().values());
    // No alignment is asked for: an aligned copy would take as much memory as the index again.
    List<ExtentRequest> wanted =
        tensors.stream().map(tensor -> new ExtentRequest(tensor.extent(), 1)).toList();
    Loaded mapped =
        file instanceof Location.Local
            ? session.map(wanted)
            : session.load(wanted, Device.HOST, TransferOptions.defaults());
    return Cleanup.orUndo(
        () -> {
          Map<String, MappedColumn> columns = new HashMap<>();
          for (int i = 0; i < tensors.size(); i++) {
            StoredTensor tensor = tensors.get(i);
            MappedColumn column = new MappedColumn(mapped.regions().get(i));
            requireChecksum(tensor, column, checksums);
            columns.put(tensor.name(), column);
          }
          return new Mapped(mapped, columns);
        },
        mapped::close);
  }

  private void requireChecksum(
      StoredTensor tensor, MappedColumn column, Map<String, Integer> checksums) {
    int sum = Crc32c.of(column.bytes());
    Integer stored = checksums.get(tensor.name());
    if (stored == null || stored != sum) {
      throw new MalformedFileException(
          index,
          tensor.extent().offset(),
          "checksum-mismatch",
          "tensor '" + tensor.name() + "' has CRC32C " + IndexNotes.digits(sum));
    }
  }

  /// The checksums of tensors in memory, by their names.
  public static Map<String, Integer> checksums(List<NewTensor> tensors) {
    Map<String, Integer> checksums = new HashMap<>();
    for (NewTensor tensor : tensors) {
      if (tensor.source() instanceof Memory.OnHost(var bytes)) {
        checksums.put(tensor.name(), Crc32c.of(bytes));
      }
    }
    return checksums;
  }

  /// Fails if the store of a remote file cannot be written.
  public void requireWritable() {
    if (file instanceof Location.Remote remote) {
      var _ = session.writable(remote);
    }
  }

  /// Fails if the data file has changed.
  ///
  /// @throws MalformedFileException of kind `changed-meanwhile`
  public void requireUnchanged(FileStamp before) {
    String change = FileStamp.of(file, session).changeSince(before, Optional.empty());
    if (!change.isEmpty()) {
      throw new MalformedFileException(
          file, 0, "changed-meanwhile", "the file changed while it was indexed: " + change);
    }
  }

  /// Writes the index, which replaces an older one. The index of a remote file is written to this
  /// machine's temporary folder and then uploaded.
  public void write(List<NewTensor> tensors, SortedMap<String, String> notes) {
    switch (index) {
      case Location.Local(Path target, _) -> write(target, tensors, notes);
      case Location.Remote target -> {
        try (UploadFolder folder = UploadFolder.make()) {
          Path made = folder.file(target.fileName());
          write(made, tensors, notes);
          session.writable(target).upload(made, target);
        }
      }
    }
  }

  private void write(Path target, List<NewTensor> tensors, SortedMap<String, String> notes) {
    // The index is written without the checks for weights, since other safetensors files in this
    // folder do not matter.
    session.write(
        NewSafetensors.file(target, tensors, notes).files(),
        WriteOptions.defaults().withChecksums(false));
  }
}
