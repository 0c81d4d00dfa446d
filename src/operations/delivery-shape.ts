import { z } from 'zod';

export const deliveryStates = ['waiting', 'delivered', 'dead'] as const;

/** How a delivery stands. */
export const deliveryShape = z
  .object({
    delivery_id: z.string().describe('Sent along as webhook-id; the same however often it is tried'),
    event: z.string(),
    event_id: z.string().describe('STREAM/ID'),
    state: z.enum(deliveryStates),
    attempts: z.int(),
    created_at: z.string(),
    next_at: z.string().optional().describe('When it is tried again'),
    last_at: z.string().optional(),
    last_answer: z.string().optional().describe('Status and the beginning of the answer, or what went wrong'),
    delivered_at: z.string().optional(),
    body: z.looseObject({}).describe('What is sent'),
  })
  .meta({ id: 'Delivery' });
