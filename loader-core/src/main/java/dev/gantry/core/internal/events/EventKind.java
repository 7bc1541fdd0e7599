// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import java.util.ArrayList;
import java.util.List;
import jdk.jfr.AnnotationElement;
import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.EventFactory;
import jdk.jfr.EventType;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Threshold;
import jdk.jfr.Timespan;
import jdk.jfr.ValueDescriptor;
import org.jspecify.annotations.Nullable;

/// Describes one kind of flight recorder event, as a recording shows it. If a load has thousands
/// of events of a kind, only long events are recorded. Thread-safe.
public final class EventKind {
  /// Extents of files are loaded, from opening the files to the last byte.
  public static final EventKind LOAD =
      new EventKind(
          "Load",
          "Extents of files were loaded into memory",
          false,
          new Field("device", "Device", Unit.TEXT),
          new Field("extents", "Extents", Unit.COUNT),
          new Field("files", "Files", Unit.COUNT),
          new Field("bytes", "Read, blocks at the edges included", Unit.BYTES),
          new Field("directBytes", "Read past the page cache", Unit.BYTES),
          new Field("reads", "Requests", Unit.COUNT),
          new Field("failure", "Failure, if any", Unit.TEXT));

  /// One request is read. The event of a `staged` read ends when the bytes are in a pinned buffer. The event of
  /// a remote file's read ends on a thread of the store.
  public static final EventKind READ =
      new EventKind(
          "Read",
          "One request was read from a file",
          true,
          new Field("file", "File", Unit.TEXT),
          new Field("offset", "Offset in the file", Unit.BYTES),
          new Field("length", "Length", Unit.BYTES),
          new Field("transport", "Transport", Unit.TEXT),
          new Field("residency", "In the page cache: hot, cold or unknown", Unit.TEXT),
          new Field("direct", "Read past the page cache", Unit.FLAG));

  /// Copies are made from or into one buffer: see [CopyEvent].
  public static final EventKind COPY =
      new EventKind(
          "Copy",
          "Bytes were copied between a device and a buffer in host memory",
          true,
          new Field("device", "Device", Unit.TEXT),
          new Field("direction", "Direction", Unit.TEXT),
          new Field("bytes", "Size", Unit.BYTES),
          new Field("copies", "Copies of the buffer", Unit.COUNT));

  /// A thread waits: a reader or writer, for pinned buffers that other loads and saves have, or for copies from
  /// or into a buffer; or the consumer of a ring, for its next batch.
  public static final EventKind WAIT =
      new EventKind(
          "Wait",
          "A thread waited",
          true,
          new Field("waitedFor", "Waited for buffers, copy or batch", Unit.TEXT));

  /// A file has to change its transport.
  public static final EventKind FALLBACK =
      new EventKind(
          "Fallback",
          "A file's bytes use another transport than the one chosen first",
          false,
          new Field("file", "File", Unit.TEXT),
          new Field("transport", "Transport now used", Unit.TEXT),
          new Field("reason", "Reason", Unit.TEXT));

  /// cuFile is asked to register a file or memory.
  public static final EventKind REGISTRATION =
      new EventKind(
          "Registration",
          "cuFile was asked to take a file or memory",
          false,
          new Field("what", "The file's name, or memory", Unit.TEXT),
          new Field("device", "Device", Unit.TEXT),
          new Field("bytes", "Size of memory", Unit.BYTES),
          new Field("refusal", "Refusal, if any", Unit.TEXT));

  /// A ring hands over a batch. It was prepared from asking the source until only the device had work left.
  public static final EventKind RING_BATCH =
      new EventKind(
          "RingBatch",
          "A prefetching ring handed a batch to its consumer",
          false,
          new Field("number", "Number", Unit.COUNT),
          new Field("bytes", "Size", Unit.BYTES),
          new Field("waited", "Consumer waited", Unit.NANOSECONDS),
          new Field("prepared", "Prepared within", Unit.NANOSECONDS));

  /// Files are written, until all are durable under their names.
  public static final EventKind SAVE =
      new EventKind(
          "Save",
          "Files were written and got their names",
          false,
          new Field("file", "First file", Unit.TEXT),
          new Field("files", "Files", Unit.COUNT),
          new Field("bytes", "Written", Unit.BYTES),
          new Field("directBytes", "Written past the page cache", Unit.BYTES),
          new Field("writes", "Requests", Unit.COUNT),
          new Field("failure", "Failure, if any", Unit.TEXT));

  /// One step of the protocol by which files are written is done, or fails. A crash must find each step done or
  /// not begun.
  public static final EventKind COMMIT =
      new EventKind(
          "Commit",
          "A step that makes a new file durable",
          false,
          new Field("step", "Step", Unit.TEXT),
          new Field("file", "File, with the name that it gets, or folder", Unit.TEXT));

  /// The type of a field's values, and what its numbers count.
  private enum Unit {
    TEXT(String.class),
    FLAG(boolean.class),
    COUNT(long.class),
    BYTES(long.class),
    NANOSECONDS(long.class);

    private final Class<?> type;

    Unit(Class<?> type) {
      this.type = type;
    }
  }

  private record Field(String name, String label, Unit unit) {}

  private final String eventName;
  private final String description;
  private final boolean onlyLong;
  private final List<Field> fields;

  /// The factory of the events. It is null until the first event is made, since a runtime without
  /// the module `jdk.jfr` cannot load its class.
  private volatile @Nullable EventFactory factory;

  /// @param eventName the event's name without its prefix `dev.gantry.`
  private EventKind(String eventName, String description, boolean onlyLong, Field... fields) {
    this.eventName = eventName;
    this.description = description;
    this.onlyLong = onlyLong;
    this.fields = List.of(fields);
  }

  Event newEvent() {
    return factory().newEvent();
  }

  EventType type() {
    return factory().getEventType();
  }

  private EventFactory factory() {
    EventFactory present = factory;
    return present == null ? make() : present;
  }

  private synchronized EventFactory make() {
    EventFactory made = factory;
    if (made == null) {
      List<AnnotationElement> all = new ArrayList<>();
      all.add(new AnnotationElement(Name.class, "dev.gantry." + eventName));
      all.add(new AnnotationElement(Label.class, eventName));
      all.add(new AnnotationElement(Category.class, new String[] {"Gantry"}));
      all.add(new AnnotationElement(Description.class, description));
      all.add(new AnnotationElement(StackTrace.class, false));
      all.add(new AnnotationElement(Threshold.class, onlyLong ? "20 ms" : "0 ns"));
      made = EventFactory.create(all, fields.stream().map(EventKind::describe).toList());
      factory = made;
    }
    return made;
  }

  private static ValueDescriptor describe(Field field) {
    List<AnnotationElement> all = new ArrayList<>();
    all.add(new AnnotationElement(Label.class, field.label()));
    switch (field.unit()) {
      case BYTES -> all.add(new AnnotationElement(DataAmount.class, DataAmount.BYTES));
      case NANOSECONDS -> all.add(new AnnotationElement(Timespan.class, Timespan.NANOSECONDS));
      case TEXT, FLAG, COUNT -> {}
    }
    return new ValueDescriptor(field.unit().type, field.name(), all);
  }
}
