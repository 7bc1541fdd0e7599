// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.Model;
import ai.djl.huggingface.tokenizers.HuggingFaceTokenizer;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.models.internal.chat.ChatTemplate;
import dev.gantry.models.internal.chat.TextDecoder;
import dev.gantry.models.internal.texts.TextTokenizer;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.PrimitiveIterator;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import java.util.stream.LongStream;

/// Holds a conversation with a model. The folder's chat template turns the conversation into a
/// text, and the model continues this text. The chat keeps the keys and values of the
/// conversation, so that each answer computes only the new tokens. Only one thread at a time may
/// use a chat; a call while another thread's runs is refused.
///
/// ```java
/// try (Chat chat = hub.chat()) {
///   chat.stream(List.of(ChatMessage.user("Why is the sky blue?"))).forEachRemaining(System.out::print);
/// }
/// ```
public final class Chat implements AutoCloseable {
  private final HubModel hub;
  private final Model model;
  private final HuggingFaceTokenizer tokenizer;
  private final ChatTemplate template;
  private final TextSession session;
  private final List<String> stops;

  /// Held during a computation. [#close] waits for this lock, because freeing the tokenizer while
  /// its native library runs would end the process.
  private final ReentrantLock use = new ReentrantLock();

  private boolean closed;

  private Chat(
      HubModel hub,
      Model model,
      HuggingFaceTokenizer tokenizer,
      ChatTemplate template,
      TextGenerator generator,
      List<String> stops) {
    this.hub = hub;
    this.model = model;
    this.tokenizer = tokenizer;
    this.template = template;
    this.stops = stops;
    session = generator.session(model);
  }

  static Chat open(HubModel hub, TextOptions options, TextGenerator generator, List<String> stops) {
    for (String stop : stops) {
      if (MisuseException.requireGiven("a text that ends an answer", stop).isEmpty()) {
        throw new MisuseException("a text that ends an answer must not be empty");
      }
    }
    ChatTemplate template = ChatTemplate.read(hub.folder());
    HuggingFaceTokenizer tokenizer = TextTokenizer.library(hub.folder(), false);
    return Cleanup.orUndo(
        () -> {
          Model model = hub.load(options.device(), options.load(false));
          return Cleanup.orUndo(
              () -> new Chat(hub, model, tokenizer, template, generator, stops), model::close);
        },
        tokenizer::close);
  }

  /// Returns the text that the model continues: the conversation in the template's form, and the
  /// beginning of the answer.
  ///
  /// @throws MisuseException if the template refuses the conversation, for example one without a
  ///     message of the user
  /// @throws MalformedFileException if the template cannot be rendered
  public String prompt(List<ChatMessage> conversation) {
    MisuseException.requireGiven("conversation", conversation);
    return template.render(
        conversation.stream()
            .map(message -> MisuseException.requireGiven("message", message))
            .map(Chat::members)
            .toList(),
        true);
  }

  /// Returns a message as templates see it. Its members keep their order, since a template may
  /// write all of them.
  private static Map<String, String> members(ChatMessage message) {
    Map<String, String> members = new LinkedHashMap<>();
    members.put("role", message.role());
    members.put("content", message.content());
    return members;
  }

  /// Returns the whole answer to a conversation.
  ///
  /// @param conversation all messages, including earlier answers
  /// @throws dev.gantry.core.GantryException as [#stream]
  public String answer(List<ChatMessage> conversation) {
    return alone(() -> {
      StringBuilder answer = new StringBuilder();
      stream(conversation).forEachRemaining(answer::append);
      return answer.toString();
    });
  }

  /// Refuses a second thread, because its call would silently end the answer of the first thread.
  private <T> T alone(Supplier<T> work) {
    if (!use.tryLock()) {
      throw new MisuseException("a chat is for one thread at a time: another one is answered now");
    }
    try {
      if (closed) {
        throw new MisuseException("this chat is closed");
      }
      return work.get();
    } finally {
      use.unlock();
    }
  }

  /// Begins an answer and returns its text in pieces of whole characters. The iterator computes
  /// each piece when `next` is called, so a caller may stop at any piece. The next call of
  /// [#stream] or [#answer] ends the iterator.
  ///
  /// @param conversation all messages, including earlier answers
  /// @throws dev.gantry.core.GantryException as [#prompt]; also if the conversation is longer than
  ///     the model's longest text
  public Iterator<String> stream(List<ChatMessage> conversation) {
    String prompt = prompt(conversation);
    return alone(() -> {
      // The template writes all special tokens itself, including the first one.
      long[] text = tokenizer.encode(prompt, false, false).getIds();
      return new Pieces(session.tokens(text));
    });
  }

  /// The pieces of an answer.
  private final class Pieces implements Iterator<String> {
    private final PrimitiveIterator.OfLong tokens;
    private final TextDecoder decoder = new TextDecoder(ids -> tokenizer.decode(ids, true), stops);
    private String next = "";
    private boolean ended;

    Pieces(PrimitiveIterator.OfLong tokens) {
      this.tokens = tokens;
    }

    @Override
    public boolean hasNext() {
      return !next.isEmpty() || (!ended && alone(this::advance));
    }

    private boolean advance() {
      while (next.isEmpty() && !ended) {
        long token = tokens.hasNext() ? tokens.nextLong() : -1;
        boolean isEnd = LongStream.of(hub.endTokens()).anyMatch(end -> end == token);
        if (token < 0 || isEnd) {
          next = decoder.end();
          ended = true;
        } else {
          next = decoder.add(token);
          ended = decoder.isStopped();
        }
      }
      return !next.isEmpty();
    }

    @Override
    public String next() {
      if (!hasNext()) {
        throw new NoSuchElementException("the answer has ended");
      }
      String piece = next;
      next = "";
      return piece;
    }
  }

  /// Frees the model's memory, the cache and the tokenizer. It first waits for the computation of
  /// another thread: a whole answer, or one piece of a stream.
  @Override
  public void close() {
    use.lock();
    try {
      closed = true;
      // The cache's arrays belong to a submanager of the model's manager, which closes them.
      model.close();
      tokenizer.close();
    } finally {
      use.unlock();
    }
  }
}
