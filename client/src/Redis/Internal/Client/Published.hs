-- | Sorts what comes on a connection with subscriptions: messages and answers, and the
-- subscribers of each message. RESP3 sends pushes and RESP2 sends arrays; both look the same here.
module Redis.Internal.Client.Published
  ( Sorter (..),
    Sorted (..),
    sortOut,
    questionRequest,
  )
where

import Data.ByteString (ByteString)
import Data.IntMap.Strict (IntMap)
import Data.IntMap.Strict qualified as IntMap
import Redis.Error (serverErrorFromText)
import Redis.Internal.Client.EventQueue (Event (..), Message (..), joinGaps)
import Redis.Internal.Client.Listening
import Redis.Internal.Client.Subscribing (Answer (..), step)
import Redis.Internal.Client.Subscribing qualified as Subscribing
import Redis.Internal.Client.Topic
import Redis.Internal.Network.Runtime (Nanos)
import Redis.Internal.Protocol.Encode (Request, request)
import Redis.Internal.Protocol.Repeated
import Redis.Value

-- | The request for a question.
questionRequest :: Question -> Request
questionRequest Question {questionAsk, questionTopics} = request $ case questionAsk of
  Subscribe kind -> named kind "SUBSCRIBE" "PSUBSCRIBE" "SSUBSCRIBE" : names
  Unsubscribe kind -> named kind "UNSUBSCRIBE" "PUNSUBSCRIBE" "SUNSUBSCRIBE" : names
  Probe -> ["PING"]
  where
    names = map topicName questionTopics

named :: Kind -> a -> a -> a -> a
named kind ofChannel ofPattern ofShard = case kind of
  OfChannel -> ofChannel
  OfPattern -> ofPattern
  OfShard -> ofShard

-- | The meaning of one value that came.
data Heard
  = -- | A message: the topic's kind and name, the channel, and the payload.
    Published Kind ByteString ByteString ByteString
  | Answered Answer
  | -- | Anything else.
    Odd

heardOf :: Value -> Heard
heardOf = \case
  Push items -> ofItems items
  Array items -> ofItems items
  SimpleString "PONG" -> Answered Ponged
  ErrorReply text -> Answered (Refusal (serverErrorFromText text))
  WithAttributes _ value -> heardOf value
  _ -> Odd
  where
    ofItems = \case
      [BulkString what, BulkString channel, BulkString payload]
        | what == "message" -> Published OfChannel channel channel payload
        | what == "smessage" -> Published OfShard channel channel payload
        | otherwise -> Odd
      [BulkString "pmessage", BulkString glob, BulkString channel, BulkString payload] -> Published OfPattern glob channel payload
      [BulkString what, BulkString name, Integer _] -> case what of
        "subscribe" -> Answered (Began OfChannel name)
        "psubscribe" -> Answered (Began OfPattern name)
        "ssubscribe" -> Answered (Began OfShard name)
        "unsubscribe" -> Answered (Ended OfChannel name)
        "punsubscribe" -> Answered (Ended OfPattern name)
        "sunsubscribe" -> Answered (Ended OfShard name)
        _ -> Odd
      [BulkString "pong", _] -> Answered Ponged
      _ -> Odd

-- | The time, the connection, and how to make the event for a gap.
data Sorter = Sorter Nanos PubSubConnection Int ((Topic, Nanos) -> Event)

-- | The result of sorting.
data Sorted = Sorted
  { sortedState :: State,
    -- | Whether the state has changed.
    sortedStepped :: Bool,
    -- | The events for each subscriber, the last one first.
    sortedEvents :: IntMap [Event],
    -- | The actions that are not gaps.
    sortedActions :: [Action],
    -- | The values for which there was no room.
    sortedRest :: [Came]
  }

-- | The last message, its topic and subscribers, and the events of this topic since, last first.
data Run = Run Value Topic [SubscriberId] [Event]

-- | Hands out at most so many values, in their order. \(O(1)\) for a message that repeats
-- the one before, otherwise \(O(\log n)\) in the topics.
sortOut :: Sorter -> Int -> State -> [Came] -> Sorted
sortOut (Sorter now pubSub number gapOf) = \room state came -> go room Nothing (Sorted state False IntMap.empty [] []) came
  where
    go :: Int -> Maybe Run -> Sorted -> [Came] -> Sorted
    go !left run !sorted = \case
      [] -> finished run sorted []
      rest@(next : others)
        | left <= 0 -> finished run sorted (whole run rest)
        | otherwise -> case (next, run) of
          (Again payload, Just (Run value about subscribers events)) -> go (left - 1) (Just (Run value about subscribers (again about events payload))) sorted others
          -- Repeats a value that is no message.
          (Again _, Nothing) -> go left run sorted others
          (Came value, _) -> case heardOf value of
            Published kind name channel payload ->
              let about = topicAt pubSub kind name
                  subscribers = subscribersAt (sortedState sorted) pubSub number about
                  -- Keeps the topic's own bytes, not a copy for each message.
                  at = if channel == topicName about then topicName about else channel
               in go (left - 1) (Just (Run value about subscribers [Message (MessageOf about at payload)])) (given run sorted) others
            Answered answer ->
              let before = given run sorted
                  (state, actions) = step now (Subscribing.Said pubSub number answer) (sortedState before)
               in go (left - 1) Nothing (foldl act before {sortedState = state, sortedStepped = True} actions) others
            Odd -> go left Nothing (given run sorted) others

    again about events payload = case events of
      Message before : _ -> let !event = Message before {messagePayload = payload} in event : events
      _ -> Message (MessageOf about (topicName about) payload) : events

    finished run sorted rest =
      let done = given run sorted
       in done {sortedActions = reverse (sortedActions done), sortedRest = rest}

    -- A repetition must not stand first: there is no message before it to repeat.
    whole run = \case
      Again payload : others | Just (Run value _ _ _) <- run -> Came (withLast payload value) : others
      rest -> rest

    given run sorted = case run of
      Nothing -> sorted
      Just (Run _ _ subscribers events) -> sorted {sortedEvents = foldr (\subscriber -> IntMap.insertWith (<>) subscriber events) (sortedEvents sorted) subscribers}

    act sorted = \case
      Missed subscriber name since -> sorted {sortedEvents = IntMap.alter (Just . afterGap (gapOf (name, since))) subscriber (sortedEvents sorted)}
      action -> sorted {sortedActions = action : sortedActions sorted}

    -- Joins consecutive gaps.
    afterGap event = \case
      Just (Gap one : others) | Gap other <- event, Just both <- joinGaps one other -> Gap both : others
      Just events -> event : events
      Nothing -> [event]
