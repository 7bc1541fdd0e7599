// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.index.TfRecordIndex.Found.Unusable;
import dev.gantry.formats.internal.index.TfRecordIndex.Found.Usable;
import dev.gantry.formats.internal.safetensors.SafetensorsHeader;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.zip.CRC32C;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Opens an index, and checks all of it before it is used.
///
/// @param file the indexed file
/// @param byRecords whether to compare the records of a local file whose time has changed
record IndexOpener(Location file, Location index, GantrySession session, boolean byRecords) {
  private static final Logger LOG = LoggerFactory.getLogger(IndexOpener.class);

  static TfRecordIndex.Found open(Location file, GantrySession session, boolean byRecords) {
    return new IndexOpener(file, TfRecordIndex.indexFile(file), session, byRecords).open();
  }

  private TfRecordIndex.Found open() {
    return switch (file) {
      case Location.Local(var path, _) -> {
        SourceFile.Identity identity = SourceFile.Identity.look(path);
        yield open(FileStamp.of(identity), identity, Optional.empty());
      }
      case Location.Remote _ -> {
        try (SourceFile opened = session.openFile(file)) {
          yield openRemote(opened);
        }
      }
    };
  }

  private TfRecordIndex.Found openRemote(SourceFile opened) {
    Optional<Instant> written;
    try (SourceFile beside = session.openFile(index)) {
      // Without a time the index counts as older than the file.
      written = Optional.of(beside.modified().orElse(Instant.EPOCH));
    } catch (TransferException e) {
      if (e.isNotFound()) {
        return new Unusable(index + " is not there");
      }
      throw e;
    }
    return open(FileStamp.of(opened), opened.identity(), written);
  }

  /// @param written when the remote index was written
  private TfRecordIndex.Found open(FileStamp stamp, Object identity, Optional<Instant> written) {
    Optional<SafetensorsHeader> header = header();
    if (header.isEmpty()) {
      return new Unusable(index + " is not there");
    }
    IndexNotes.Parser parser = new IndexNotes.Parser(index, header.get().metadata());
    long version = parser.version();
    if (version != IndexFormat.VERSION) {
      return new Unusable(
          index
              + " is of version "
              + version
              + ", where only "
              + IndexFormat.VERSION
              + " is known");
    }
    IndexNotes notes = parser.parse();
    String change = stamp.changeSince(notes.stamp(), written);
    if (!change.isEmpty() && !(stamp.size() == notes.stamp().size() && hasItsRecords(notes))) {
      return new Unusable(index + " is stale: " + change);
    }
    return new Usable(map(header.get(), notes, identity));
  }

  /// Whether a local file, such as a copy, has the records that were indexed. It reads the whole file.
  private boolean hasItsRecords(IndexNotes notes) {
    if (!byRecords
        || notes.recordsSum().isEmpty()
        || !(file instanceof Location.Local(var path, _))) {
      return false;
    }
    LOG.info(
        "{} is not as old as it was when it was indexed: its {} bytes are compared with its index;"
            + " an index that is built anew spares this",
        file,
        notes.stamp().size());
    SourceFile.Identity before = SourceFile.Identity.look(path);
    CRC32C sum = new CRC32C();
    long records = 0;
    try (TfRecordReader reader = TfRecordReader.open(session, file, IndexBuilder.ALL)) {
      for (; reader.next(); records++) {
        sum.update(reader.record().asByteBuffer());
      }
    } catch (MalformedFileException _) {
      return false;
    }
    return records == notes.records()
        && (int) sum.getValue() == notes.recordsSum().getAsInt()
        && SourceFile.Identity.look(path).equals(before);
  }

  private Optional<SafetensorsHeader> header() {
    try {
      return Optional.of(SafetensorsHeader.read(session, index));
    } catch (TransferException e) {
      if (e.isNotFound()) {
        return Optional.empty();
      }
      throw e;
    }
  }

  private TfRecordIndex map(SafetensorsHeader header, IndexNotes notes, Object identity) {
    IndexCheck rules = new IndexCheck(header, notes);
    rules.checkTensors();
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
            requireChecksum(tensor, column, notes);
            columns.put(tensor.name(), column);
          }
          rules.checkNumbers(columns);
          return new TfRecordIndex(file, identity, notes, mapped, columns);
        },
        mapped::close);
  }

  private void requireChecksum(StoredTensor tensor, MappedColumn column, IndexNotes notes) {
    int sum = Crc32c.of(column.bytes());
    Integer stored = notes.checksums().get(tensor.name());
    if (stored == null || stored != sum) {
      throw new MalformedFileException(
          index,
          tensor.extent().offset(),
          "checksum-mismatch",
          "tensor '" + tensor.name() + "' has CRC32C " + IndexNotes.digits(sum));
    }
  }
}
