// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;

/// Flight recorder event: a ring handed over a batch.
public final class RingBatchEvent {
  /// The event as the recorder keeps it.
  @Name("dev.gantry.RingBatch")
  @Label("Batch handed over")
  @Category("Gantry")
  @Description("A prefetching ring handed a batch to its consumer")
  @StackTrace(false)
  @SuppressWarnings("UnusedVariable") // The recorder reads the fields.
  static final class Recorded extends Event {
    @Label("Number")
    final long number;

    @Label("Size")
    @DataAmount
    final long bytes;

    @Label("Consumer waited")
    @Timespan(Timespan.NANOSECONDS)
    final long waited;

    @Label("Prepared within")
    @Description("From asking the source until only the device had work left")
    @Timespan(Timespan.NANOSECONDS)
    final long prepared;

    Recorded(long number, long bytes, long waited, long prepared) {
      this.number = number;
      this.bytes = bytes;
      this.waited = waited;
      this.prepared = prepared;
    }
  }

  private RingBatchEvent() {}

  /// Writes the event if it is recorded.
  public static void handedOver(long number, long bytes, long waited, long prepared) {
    if (EventRecorder.wasStarted()) {
      new Recorded(number, bytes, waited, prepared).commit();
    }
  }
}
