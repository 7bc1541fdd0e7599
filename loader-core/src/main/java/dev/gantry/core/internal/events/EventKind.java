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

/// Describes one kind of flight recorder event: its name and its fields, as a recording shows them. Thread-safe.
///
/// @see Unit
final class EventKind {
  private final String name;
  private final String label;
  private final String description;
  private final String threshold;
  private final List<Field> fields;

  /// Null until the first event is made: a runtime without the module `jdk.jfr` cannot load its class.
  private volatile @Nullable EventFactory factory;

  /// The type of a field's values, and what its numbers count.
  enum Unit {
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

  /// @param description empty where the label says all
  record Field(String name, String label, Unit unit, String description) {
    Field(String name, String label, Unit unit) {
      this(name, label, unit, "");
    }
  }

  /// A kind of which every event is recorded.
  ///
  /// @param name without `dev.gantry.`
  static EventKind all(String name, String label, String description, Field... fields) {
    return new EventKind(name, label, description, "0 ns", List.of(fields));
  }

  /// A kind of which only long events are recorded, since one load has thousands of them.
  static EventKind onlyLong(String name, String label, String description, Field... fields) {
    return new EventKind(name, label, description, "20 ms", List.of(fields));
  }

  private EventKind(
      String name, String label, String description, String threshold, List<Field> fields) {
    this.name = name;
    this.label = label;
    this.description = description;
    this.threshold = threshold;
    this.fields = fields;
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
      all.add(new AnnotationElement(Name.class, "dev.gantry." + name));
      all.add(new AnnotationElement(Label.class, label));
      all.add(new AnnotationElement(Category.class, new String[] {"Gantry"}));
      all.add(new AnnotationElement(Description.class, description));
      all.add(new AnnotationElement(StackTrace.class, false));
      all.add(new AnnotationElement(Threshold.class, threshold));
      made = EventFactory.create(all, fields.stream().map(EventKind::describe).toList());
      factory = made;
    }
    return made;
  }

  private static ValueDescriptor describe(Field field) {
    List<AnnotationElement> all = new ArrayList<>();
    all.add(new AnnotationElement(Label.class, field.label()));
    if (!field.description().isEmpty()) {
      all.add(new AnnotationElement(Description.class, field.description()));
    }
    switch (field.unit()) {
      case BYTES -> all.add(new AnnotationElement(DataAmount.class, DataAmount.BYTES));
      case NANOSECONDS -> all.add(new AnnotationElement(Timespan.class, Timespan.NANOSECONDS));
      case TEXT, FLAG, COUNT -> {}
    }
    return new ValueDescriptor(field.unit().type, field.name(), all);
  }
}
