// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.formats.internal.index.TfRecordIndex.Found.Unusable;
import dev.gantry.formats.internal.index.TfRecordIndex.Found.Usable;
import dev.gantry.formats.internal.safetensors.SafetensorsHeader;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.util.Optional;
import java.util.zip.CRC32C;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Opens an index, and checks all of it before it is used.
///
/// @param byRecords whether to compare the records of a local file whose time has changed
record IndexOpener(IndexFile index, boolean byRecords) {
  private static final Logger LOG = LoggerFactory.getLogger(IndexOpener.class);

  static TfRecordIndex.Found open(Location file, GantrySession session, boolean byRecords) {
    return new IndexOpener(IndexFile.of(file, session), byRecords).open();
  }

  private TfRecordIndex.Found open() {
    Optional<IndexFile.State> state = index.look();
    Optional<SafetensorsHeader> header = state.isEmpty() ? Optional.empty() : index.header();
    if (header.isEmpty()) {
      return new Unusable(index.index() + " does not exist");
    }
    IndexNotes.Parser parser = new IndexNotes.Parser(index.index(), header.get().metadata());
    long version = parser.version(IndexFormat.FORMAT);
    if (version != IndexFormat.VERSION) {
      return new Unusable(
          index.index()
              + " is of version "
              + version
              + ", where only "
              + IndexFormat.VERSION
              + " is known");
    }
    IndexNotes notes = parser.parse();
    FileStamp stamp = state.get().stamp();
    String change = stamp.changeSince(notes.stamp(), state.get().written());
    if (!change.isEmpty() && !(stamp.size() == notes.stamp().size() && hasItsRecords(notes))) {
      return new Unusable(index.index() + " is stale: " + change);
    }
    return new Usable(map(header.get(), notes, state.get().identity()));
  }

  /// Whether a local file, such as a copy, has the records that were indexed. It reads the whole file.
  private boolean hasItsRecords(IndexNotes notes) {
    if (!byRecords
        || notes.recordsSum().isEmpty()
        || !(index.file() instanceof Location.Local(var path, _))) {
      return false;
    }
    LOG.info(
        "{} is not as old as it was when it was indexed: its {} bytes are compared with its index;"
            + " an index that is built anew spares this",
        index.file(),
        notes.stamp().size());
    SourceFile.Identity before = SourceFile.Identity.look(path);
    CRC32C sum = new CRC32C();
    long records = 0;
    try (TfRecordReader reader =
        TfRecordReader.open(index.session(), index.file(), IndexBuilder.ALL)) {
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

  private TfRecordIndex map(SafetensorsHeader header, IndexNotes notes, Object identity) {
    IndexCheck rules = new IndexCheck(header, notes);
    rules.checkTensors();
    IndexFile.Mapped mapped = index.map(header, notes.checksums());
    return Cleanup.orUndo(
        () -> {
          rules.checkNumbers(mapped.columns());
          return new TfRecordIndex(
              index.file(), identity, notes, mapped.memory(), mapped.columns());
        },
        mapped::close);
  }
}
